"""The application: routes, with what is around them."""

from __future__ import annotations

from typing import Any

from fastapi import Depends, FastAPI
from pydantic.json_schema import models_json_schema

from pagemill._version import __version__
from pagemill.gateway.auth import Authenticator
from pagemill.gateway.errors import install_error_handlers
from pagemill.gateway.frame import Frame
from pagemill.gateway.limits import BodyLimits
from pagemill.gateway.mistral import OcrRequest
from pagemill.gateway.rates import limit_rate
from pagemill.gateway.routes import documents, events, health, jobs, ocr, openai, results
from pagemill.gateway.runtime import Services
from pagemill.gateway.schemas import DocumentRequest

_ROUTERS = (openai.router, documents.router, jobs.router, events.router, results.router, ocr.router)
"""Those with the most requests first: routes are looked for in order."""
_READ_BY_ROUTES = (DocumentRequest, OcrRequest)
"""Bodies that FastAPI does not read for us, and so does not describe."""

_DESCRIPTION = """Documents in, Markdown out. A document becomes a job that survives every crash; ask for its state,
follow its events, and read its result page by page while it runs. Errors have one form everywhere: `error.code` is
stable, `error.remedy` says what to do."""


class _App(FastAPI):
    def openapi(self) -> dict[str, Any]:
        """The description of the API, with the bodies that routes read themselves."""
        if self.openapi_schema is None:
            described = super().openapi()
            _, models = models_json_schema(
                [(model, "validation") for model in _READ_BY_ROUTES], ref_template="#/components/schemas/{model}"
            )
            schemas = described["components"]["schemas"]
            described["components"]["schemas"] = dict(sorted({**models["$defs"], **schemas}.items()))
        assert self.openapi_schema is not None
        return self.openapi_schema


def build_app(services: Services) -> FastAPI:
    """The ASGI application.

    Args:
        services: What it works with; opened and closed by the caller.
    """
    # No pages for people: they would load scripts of other hosts.
    app = _App(title="pagemill", version=__version__, description=_DESCRIPTION, docs_url=None, redoc_url=None)
    app.state.services = services
    app.state.authenticator = Authenticator(services.keys, services.options)
    app.state.chat = openai.chat_proxy(services)
    install_error_handlers(app)
    for router in _ROUTERS:
        app.include_router(router, dependencies=[Depends(limit_rate)])
    app.include_router(health.router)
    app.add_middleware(BodyLimits, limits=services.options.limits)
    app.add_middleware(Frame, services=services)
    return app
