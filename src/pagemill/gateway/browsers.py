"""Web pages that call a service on the machine of who looks at them.

A service without keys trusts whoever reaches its port. Any page in a browser reaches the ports of its own machine: by
plain forms, and by a name that first leads to the page's server and then to 127.0.0.1 (DNS rebinding). Such requests
show in the headers Host and Origin, which pages cannot forge. Keys make this check needless: no browser adds them.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from pagemill.domain.errors import PermissionDeniedError

_REMEDY = "Call the service by its address, or make a key with `pagemill keys create` and send it."


def check_no_foreign_page(host: str | None, origin: str | None, own: str) -> None:
    """Refuses requests of web pages of others; for services that ask for no keys.

    Args:
        host: The header Host.
        origin: The header Origin; None where there is none.
        own: The host that the service listens on.

    Raises:
        PermissionDeniedError: The service was called by a name that is not its own, or by a page of another site.
    """
    called = _hostname(f"http://{host}")
    if host is not None and not (_is_local(called, own) or _is_address(called)):
        raise PermissionDeniedError("The service has no keys, and was called by a name that is not its own.", _REMEDY)
    caller = _hostname(origin or "")
    if origin is not None and not (_is_local(caller, own) or (host is not None and caller == called)):
        raise PermissionDeniedError("The service has no keys, and was called by a page of another site.", _REMEDY)


def _hostname(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _is_local(name: str, own: str) -> bool:
    return name == "localhost" or name.endswith(".localhost") or (bool(name) and name == own.lower())


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
