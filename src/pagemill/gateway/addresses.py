"""Where this machine may be made to send requests by those who call it: hosts, ports and addresses.

A URL is checked twice: its text before anything happens, and the addresses that its host stands for in the very step
that connects to them. Between the two nothing is resolved again, so a name whose address changes gains nothing.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from pagemill.domain.errors import FetchError, ForbiddenUrlError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Lookup = Callable[[str], Awaitable[Sequence[str]]]
"""Gives the addresses of a name; raises OSError where there are none."""

MAX_URL = 8192
_PORTS = {"http": 80, "https": 443}
_UNCLEAN = re.compile(r"[\x00-\x20\x7f\\]")
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_LONGEST_NAME = 253

# What ipaddress calls global differs between releases of Python; these are IANA's registries of special addresses.
_NEVER_V4 = tuple(
    map(
        ipaddress.IPv4Network,
        (
            "0.0.0.0/8",
            "100.100.100.200/32",
            "169.254.0.0/16",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.88.99.0/24",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/4",
            "240.0.0.0/4",
        ),
    )
)
_PRIVATE_V4 = tuple(
    map(ipaddress.IPv4Network, ("10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"))
)
_GLOBAL_V6 = ipaddress.IPv6Network("2000::/3")
_NEVER_V6 = tuple(
    map(ipaddress.IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "fd00:ec2::254/128"))
)
_PRIVATE_V6 = tuple(map(ipaddress.IPv6Network, ("::1/128", "fc00::/7")))
_EMBEDDED_V4 = tuple(map(ipaddress.IPv6Network, ("::ffff:0:0/96", "64:ff9b::/96")))

_REMEDY_ADDRESS = "Name a host with public addresses only."


def allowed_address(address: str, *, private: bool = False) -> bool:
    """Whether connections to an address are allowed.

    Public unicast addresses are; private ones (loopback, RFC 1918, RFC 6598, unique local) on request. Never allowed
    are link-local, unspecified, multicast, reserved and documentation addresses, those of the metadata services of
    clouds, and the tunnels 6to4 and Teredo. IPv4 addresses inside IPv6 (mapped, NAT64) count as what they are.

    Args:
        address: An IPv4 or IPv6 address in its usual form; anything else is not allowed.
        private: Whether private addresses are allowed too.
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.scope_id is not None:
            return False
        if not any(parsed in network for network in _EMBEDDED_V4):
            return _allowed_v6(parsed, private=private)
        parsed = ipaddress.IPv4Address(int(parsed) & 0xFFFF_FFFF)
    if any(parsed in network for network in _NEVER_V4):
        return False
    return private or not any(parsed in network for network in _PRIVATE_V4)


def _allowed_v6(address: ipaddress.IPv6Address, *, private: bool) -> bool:
    if any(address in network for network in _NEVER_V6):
        return False
    return address in _GLOBAL_V6 or (private and any(address in network for network in _PRIVATE_V6))


@dataclass(frozen=True, slots=True)
class _Entry:
    """One host of an allow-list; `port` None stands for the usual ports."""

    host: str
    port: int | None
    below: bool

    def covers(self, host: str, port: int) -> bool:
        if port != self.port and (self.port is not None or port not in _PORTS.values()):
            return False
        return host.endswith("." + self.host) if self.below else host == self.host


def _entry(text: str) -> _Entry:
    below = text.startswith("*.")
    try:
        url = URL(f"http://{text.removeprefix('*.')}")
        host, literal = _host_of(url)
    except (ValueError, ForbiddenUrlError) as error:
        raise ValueError(f"{text!r} is no host: give names such as example.com, *.example.com, host:8443") from error
    if url.raw_path != "/" or url.query_string or url.fragment or url.user is not None or (below and literal):
        raise ValueError(f"{text!r} is no host: give names such as example.com, *.example.com, host:8443")
    return _Entry(host, url.explicit_port, below)


class HostRules:
    """Which URLs may be called.

    Args:
        allowed: Hosts that may be named: `example.com` and `*.example.com` with the ports 80 and 443, `host:8443` with
            that port alone. Empty: all hosts.
        allow_private: Whether hosts named in `allowed` may have private addresses.

    Raises:
        ValueError: An entry is no host.
    """

    def __init__(self, allowed: Sequence[str] = (), *, allow_private: bool = False) -> None:
        self._entries = tuple(map(_entry, allowed))
        self._private = allow_private and bool(self._entries)

    def check_url(self, url: str) -> URL:
        """Checks the text of a URL.

        Returns:
            The URL as it must be called: in ASCII, without its fragment.

        Raises:
            ForbiddenUrlError: It is not http(s), carries a user, or names a host, port or address that is not allowed.
        """
        if len(url) > MAX_URL or _UNCLEAN.search(url):
            raise ForbiddenUrlError(
                f"The URL is longer than {MAX_URL} characters, or has spaces, backslashes or control characters in it.",
                "Percent-encode it.",
            )
        try:
            parsed, split = URL(url), urlsplit(url)
        except ValueError:
            raise ForbiddenUrlError("The URL cannot be read.", "Give one such as https://example.com/a.pdf.") from None
        if parsed.scheme not in _PORTS:
            raise ForbiddenUrlError("The URL is none of http or https.", "Give an http or https URL.")
        if "@" in split.netloc:
            raise ForbiddenUrlError("The URL carries a user or a password.", "Leave them out.")
        host, literal = _host_of(parsed)
        self._check_host(host, _PORTS[parsed.scheme] if parsed.explicit_port is None else parsed.explicit_port)
        if literal:
            self.check_addresses([host])
        elif host == "localhost" or host.endswith(".localhost"):
            self.check_addresses(["127.0.0.1"])
        if url.isascii():
            # It stays as it is: signed URLs break when they are quoted anew.
            parsed = URL.build(
                scheme=parsed.scheme,
                authority=parsed.raw_authority,
                path=split.path or "/",
                query_string=split.query,
                encoded=True,
            )
        return parsed.with_fragment(None)

    def _check_host(self, host: str, port: int) -> None:
        if self._entries:
            if not any(entry.covers(host, port) for entry in self._entries):
                raise ForbiddenUrlError(
                    f"The service does not call {host} on port {port}.",
                    "Send the document itself, or have the host allowed by who runs the service.",
                )
        elif port not in _PORTS.values():
            raise ForbiddenUrlError(f"Port {port} is not called.", "Use 80 or 443, or have host:port allowed.")

    def check_addresses(self, addresses: Sequence[str]) -> None:
        """Checks all addresses of a host that `check_url` has let through.

        Raises:
            ForbiddenUrlError: One of them is not allowed. The message does not name it: it may be of an inner network.
        """
        if not all(allowed_address(address, private=self._private) for address in addresses):
            raise ForbiddenUrlError("The URL leads to an address that is not public.", _REMEDY_ADDRESS)


def _host_of(url: URL) -> tuple[str, bool]:
    """The host in its one form, and whether it is an address.

    Raises:
        ForbiddenUrlError: It is neither a name nor an address in its usual form.
    """
    host = (url.raw_host or "").lower()
    try:
        return str(ipaddress.ip_address(host)), True
    except ValueError:
        labels = host.split(".")
        if len(host) <= _LONGEST_NAME and all(map(_LABEL.fullmatch, labels)) and not _NUMBER.fullmatch(labels[-1]):
            return host, False
    raise ForbiddenUrlError("The URL has no host that can be called.", "Give a name, or an address such as 192.0.2.1.")


async def look_up(name: str) -> Sequence[str]:
    """Asks the system for the addresses of a name.

    Each question has a thread of its own: names that never answer must not use up the threads that other work needs.

    Raises:
        OSError: There are none.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Sequence[str]] = loop.create_future()

    def settle(found: Sequence[str], error: OSError | None) -> None:
        if answer.done():
            return
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(found)

    def ask() -> None:
        found: Sequence[str] = ()
        failure: OSError | None = None
        try:
            found = list(dict.fromkeys(str(row[4][0]) for row in socket.getaddrinfo(name, 0, type=socket.SOCK_STREAM)))
        except (OSError, UnicodeError) as error:
            failure = error if isinstance(error, OSError) else OSError(str(error))
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, found, failure)

    threading.Thread(target=ask, name="pagemill-dns", daemon=True).start()
    return await answer


class GuardedResolver(AbstractResolver):
    """Gives aiohttp the addresses of a host, all of them checked; aiohttp connects to these and asks nobody else.

    Args:
        rules: What is allowed.
        lookup: Where addresses come from.
    """

    def __init__(self, rules: HostRules, lookup: Lookup = look_up) -> None:
        self._rules = rules
        self._lookup = lookup

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """The addresses of a host.

        Raises:
            ForbiddenUrlError: One of them is not allowed.
            FetchError: There are none.
        """
        try:
            addresses = await self._lookup(host)
        except OSError:
            addresses = ()
        if not addresses:
            raise FetchError(f"The host {host} was not found.", "Check the URL.")
        self._rules.check_addresses(addresses)
        return [
            {
                "hostname": host,
                "host": address,
                "port": port,
                "family": socket.AF_INET6 if ":" in address else socket.AF_INET,
                "proto": 0,
                "flags": socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            }
            for address in addresses
        ]

    async def close(self) -> None:
        """Nothing to close."""
