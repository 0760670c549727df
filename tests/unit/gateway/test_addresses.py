from __future__ import annotations

import asyncio
import ipaddress
import socket
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill.domain.errors import FetchError, ForbiddenUrlError
from pagemill.gateway.addresses import GuardedResolver, HostRules, allowed_address, look_up

NEVER = [
    "0.0.0.0",
    "0.1.2.3",
    "169.254.169.254",
    "169.254.0.1",
    "100.100.100.200",
    "192.0.0.192",
    "192.0.2.1",
    "198.18.0.1",
    "203.0.113.7",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "fe80::1",
    "fe80::1%eth0",
    "::1%lo",
    "fec0::1",
    "ff02::1",
    "2001:db8::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2002:7f00:1::1",
    "2002:808:808::1",
    "fd00:ec2::254",
    "::127.0.0.1",
    "::8.8.8.8",
    "::ffff:169.254.169.254",
    "::ffff:0.0.0.0",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::7f00:1",
    "100::1",
    "5f00::1",
    "",
    "localhost",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0177.0.0.1",
]
PRIVATE = [
    "127.0.0.1",
    "127.255.255.254",
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "100.64.0.1",
    "100.127.255.255",
    "::1",
    "fc00::1",
    "fd12:3456::1",
    "::ffff:127.0.0.1",
    "::ffff:10.1.2.3",
    "64:ff9b::7f00:1",
    "64:ff9b::10.0.0.1",
]
PUBLIC = [
    "8.8.8.8",
    "172.32.0.1",
    "100.128.0.1",
    "2606:4700::1111",
    "2a00:1450:4001::1",
    "::ffff:8.8.8.8",
    "64:ff9b::8.8.8.8",
]


@pytest.mark.parametrize("address", NEVER)
def test_special_addresses_are_never_called(address: str) -> None:
    assert not allowed_address(address)
    assert not allowed_address(address, private=True)


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses_are_called_only_on_request(address: str) -> None:
    assert not allowed_address(address)
    assert allowed_address(address, private=True)


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_called(address: str) -> None:
    assert allowed_address(address)


@given(st.ip_addresses())
def test_nothing_is_called_that_python_does_not_hold_for_global(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    if allowed_address(str(address)):
        mapped = address in ipaddress.ip_network("::ffff:0:0/96") if address.version == 6 else False
        assert mapped or address.is_global
        assert not address.is_multicast


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "gopher://example.com/",
        "ftp://example.com/a",
        "dict://example.com:11211/",
        "data:,x",
        "jar:http://example.com/",
        "//example.com/a",
        "example.com/a",
        "",
        "http:",
        "http:///a",
        "http://",
        "https://user@example.com/",
        "https://user:password@example.com/",
        "https://:password@example.com/",
        "https://@example.com/",
        "https://allowed.com@127.0.0.1/",
        "https://allowed.com\\@127.0.0.1/",
        "https://exa mple.com/",
        "https://example.com/a b",
        "https://example.com/\r\nHost: inner",
        "https://exam\tple.com/",
        "https://example.com/\x00",
        "https://example.com:0/",
        "https://example.com:8443/",
        "https://example.com:22/",
        "https://example.com:99999/",
        "https://example.com./",
        "https://-example.com/",
        "https://exa%6dple.com/",
        "http://%31%32%37.0.0.1/",
        "http://localhost/",
        "http://LocalHost/",
        "http://a.localhost/",
        "http://127.0.0.1/",
        "http://127.1/",
        "http://127.0.1/",
        "http://0/",
        "http://0.0.0.0/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0x7f.0.0.1/",
        "http://0177.0.0.1/",
        "http://017700000001/",
        "http://1.0x7f/",
        "http://a.0x/",
        "http://127.0.0.1./",
        "http://１２７.0.0.1/",
        "http://①②⑦.⓪.⓪.①/",
        "http://127。0。0。1/",
        "http://[::]/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:7f00:1]/",
        "http://[0:0:0:0:0:ffff:127.0.0.1]/",
        "http://[fe80::1%25eth0]/",
        "http://[::1",
        "http://169.254.169.254/latest/meta-data/",
        "http://[fd00:ec2::254]/",
        "https://" + "a" * 64 + ".com/",
        "https://" + "a." * 127 + "com/",
        "https://example.com/" + "a" * 9000,
    ],
)
def test_a_url_that_leads_anywhere_else_than_to_a_public_web_server_is_refused(url: str) -> None:
    with pytest.raises(ForbiddenUrlError):
        HostRules().check_url(url)


@pytest.mark.parametrize(
    ("url", "called"),
    [
        ("https://example.com/a.pdf?b=c%2Fd#page=2", "https://example.com/a.pdf?b=c%2Fd"),
        ("HTTP://EXAMPLE.com:80/", "http://example.com/"),
        ("https://example.com", "https://example.com/"),
        ("http://example.com:443/", "http://example.com:443/"),
        ("https://bücher.example/ä", "https://xn--bcher-kva.example/%C3%A4"),
        ("https://8.8.8.8/", "https://8.8.8.8/"),
        ("https://[2606:4700::1111]/", "https://[2606:4700::1111]/"),
        ("https://a_b.1-2.example/", "https://a_b.1-2.example/"),
    ],
)
def test_a_url_of_a_public_web_server_is_called_in_its_one_form(url: str, called: str) -> None:
    assert str(HostRules().check_url(url)) == called


@pytest.mark.parametrize(
    ("allowed", "url", "good"),
    [
        ("example.com", "https://example.com/", True),
        ("example.com", "https://EXAMPLE.com/", True),
        ("Example.com", "https://example.com/", True),
        ("example.com", "https://a.example.com/", False),
        ("example.com", "https://example.com.evil.org/", False),
        ("example.com", "https://evilexample.com/", False),
        ("example.com", "https://example.com./", False),
        ("example.com", "https://example.com:8443/", False),
        ("example.com:8443", "https://example.com:8443/", True),
        ("example.com:8443", "https://example.com/", False),
        ("*.example.com", "https://a.b.example.com/", True),
        ("*.example.com", "https://example.com/", False),
        ("*.example.com", "https://evilexample.com/", False),
        ("*.example.com:8443", "https://a.example.com:8443/", True),
        ("bücher.example", "https://xn--bcher-kva.example/", True),
        ("xn--bcher-kva.example", "https://bücher.example/", True),
        ("8.8.8.8:53", "http://8.8.8.8:53/", True),
        ("[2606:4700::1111]:53", "http://[2606:4700:0::1111]:53/", True),
        ("127.0.0.1:8000", "http://127.0.0.1:8000/", False),
        ("example.com", "http://8.8.8.8/", False),
    ],
)
def test_an_allow_list_says_which_hosts_and_ports_are_called(allowed: str, url: str, good: bool) -> None:
    rules = HostRules([allowed])
    if good:
        rules.check_url(url)
    else:
        with pytest.raises(ForbiddenUrlError):
            rules.check_url(url)


def test_private_addresses_are_for_hosts_on_the_list_alone() -> None:
    HostRules(["127.0.0.1:8000"], allow_private=True).check_url("http://127.0.0.1:8000/")
    HostRules(["inner.example"], allow_private=True).check_addresses(["10.0.0.1"])
    with pytest.raises(ForbiddenUrlError):
        HostRules([], allow_private=True).check_url("http://127.0.0.1/")
    with pytest.raises(ForbiddenUrlError):
        HostRules(["inner.example"], allow_private=True).check_addresses(["169.254.169.254"])


@pytest.mark.parametrize(
    "entry",
    [
        "*",
        "",
        "*.",
        "https://example.com",
        "example.com/a",
        "a b",
        "*.10.0.0.1",
        "u@a.com",
        "a.com:x",
        "*.*.com",
        "1234",
    ],
)
def test_what_is_no_host_is_not_taken_into_a_list(entry: str) -> None:
    with pytest.raises(ValueError, match="is no host"):
        HostRules([entry])


async def test_one_inner_address_among_several_is_enough_to_refuse_a_name() -> None:
    async def lookup(_name: str) -> list[str]:
        return ["8.8.8.8", "10.0.0.7"]

    with pytest.raises(ForbiddenUrlError) as caught:
        await GuardedResolver(HostRules(), lookup).resolve("example.com", 443)
    assert "10.0.0.7" not in str(caught.value)


async def test_a_name_gives_the_addresses_that_were_checked() -> None:
    async def lookup(_name: str) -> list[str]:
        return ["8.8.8.8", "2606:4700::1111"]

    found = await GuardedResolver(HostRules(), lookup).resolve("example.com", 443)
    assert [(row["host"], row["port"], row["family"]) for row in found] == [
        ("8.8.8.8", 443, socket.AF_INET),
        ("2606:4700::1111", 443, socket.AF_INET6),
    ]


@pytest.mark.parametrize("failure", [socket.gaierror("no such name"), None])
async def test_a_name_without_addresses_is_not_found(failure: OSError | None) -> None:
    async def lookup(_name: str) -> list[str]:
        if failure is not None:
            raise failure
        return []

    with pytest.raises(FetchError, match=r"example\.com was not found"):
        await GuardedResolver(HostRules(), lookup).resolve("example.com", 443)


async def test_the_system_is_asked_for_addresses() -> None:
    assert set(await look_up("localhost")) <= {"127.0.0.1", "::1"}


async def test_names_that_never_answer_do_not_use_up_the_threads_of_other_work(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()

    def getaddrinfo(*_arguments: object, **_options: object) -> list[object]:
        release.wait(60)
        raise socket.gaierror("too late")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    pending = [asyncio.ensure_future(look_up(f"slow{number}.example")) for number in range(80)]
    try:
        assert await asyncio.wait_for(asyncio.to_thread(lambda: "other work"), 30) == "other work"
    finally:
        release.set()
        results = await asyncio.gather(*pending, return_exceptions=True)
    assert all(isinstance(result, OSError) for result in results)
