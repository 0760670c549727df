"""The application: routes, with what is around them."""

from __future__ import annotations

from fastapi import FastAPI

from pagemill._version import __version__
from pagemill.gateway.auth import Authenticator
from pagemill.gateway.errors import install_error_handlers
from pagemill.gateway.frame import Frame
from pagemill.gateway.limits import BodyLimits
from pagemill.gateway.routes import health
from pagemill.gateway.runtime import Services

_ROUTERS = (health.router,)

_DESCRIPTION = """Documents in, Markdown out. A document becomes a job that survives every crash; ask for its state,
follow its events, and read its result page by page while it runs. Errors have one form everywhere: `error.code` is
stable, `error.remedy` says what to do."""


def build_app(services: Services) -> FastAPI:
    """The ASGI application.

    Args:
        services: What it works with; opened and closed by the caller.
    """
    # No pages for people: they would load scripts of other hosts.
    app = FastAPI(
        title="pagemill", version=__version__, description=_DESCRIPTION, docs_url=None, redoc_url=None, openapi_tags=[]
    )
    app.state.services = services
    app.state.authenticator = Authenticator(services.keys, services.options)
    install_error_handlers(app)
    for router in _ROUTERS:
        app.include_router(router)
    app.add_middleware(BodyLimits, limits=services.options.limits)
    app.add_middleware(Frame, services=services)
    return app
