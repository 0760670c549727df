"""What must stay inside: keys, passwords and secrets; other machines; and what documents say to browsers."""

from __future__ import annotations

import base64
import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pikepdf
import pytest

from gateway_process import GatewayProcess, running_gateway

pytestmark = pytest.mark.slow

PASSWORD = "correct-horse-battery-staple"
WRONG_PASSWORD = "tr0ub4dor-and-3"
SECRET = base64.b64encode(b"a secret that must not be shown").decode()
HOOK_TOKEN = "token-in-the-url-of-a-webhook"
SCRIPT = "<script>alert(1)</script>"
EVIL = f"""
{SCRIPT}<img src=x onerror=alert(1)><svg onload=alert(1)><iframe src="javascript:alert(1)"></iframe>
<a href="javascript:alert(1)">a</a> [b](javascript:alert(1)) <form action="https://evil.example"><input name=a></form>
<style>@import "https://evil.example/a.css"</style><meta http-equiv="refresh" content="0;url=https://evil.example">
<object data="https://evil.example"></object><base href="https://evil.example">
<td style="background:url(//evil.example)">
"""


@contextlib.contextmanager
def web_server(answer: Callable[[str], tuple[int, dict[str, str], bytes]]) -> Iterator[tuple[int, list[str]]]:
    """A web server: its port, and the requests that it got, with their bodies."""
    requests: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            requests.append(f"{self.requestline}\n{self.headers}\n{body.decode()}")
            status, headers, content = answer(self.path)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server.server_address[1], requests
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def encrypted(pdf: bytes, folder: Path) -> bytes:
    (folder / "plain.pdf").write_bytes(pdf)
    with pikepdf.open(folder / "plain.pdf") as opened:
        opened.save(folder / "encrypted.pdf", encryption=pikepdf.Encryption(user=PASSWORD, owner="owner"))
    return (folder / "encrypted.pdf").read_bytes()


def test_secrets_stay_out_of_logs_answers_metrics_and_calls(pdf: bytes, tmp_path: Path) -> None:
    answers: list[bytes] = []
    with web_server(lambda _path: (204, {}, b"")) as (port, calls):
        hook = {"WEBHOOK__ALLOWED_HOSTS": json.dumps([f"127.0.0.1:{port}"]), "WEBHOOK__ALLOW_PRIVATE": "true"}
        settings = {f"GATEWAY__{name}": value for name, value in hook.items()}
        with running_gateway(
            tmp_path, GATEWAY__AUTH="required", GATEWAY__WEBHOOK__SECRET=f"whsec_{SECRET}", **settings
        ) as gateway:
            gateway.make_key("alice")
            key = gateway.keys["alice"]
            locked = encrypted(pdf, tmp_path)
            webhook = f"http://127.0.0.1:{port}/hook?token={HOOK_TOKEN}"
            for password, status in ((PASSWORD, "succeeded"), (WRONG_PASSWORD, "failed")):
                fields = {"password": password, "webhook": webhook}
                submitted = gateway.upload(locked, key="alice", fields=fields)
                answers.append(submitted.body)
                job_id = submitted.json["id"]
                assert gateway.ended(job_id, key="alice")["status"] == status
                answers += [
                    gateway.call("GET", f"/v1/jobs/{job_id}{more}", key="alice").body
                    for more in ("", "/events", "/result", "/result?format=json", "/pages/1")
                ]
            # Secrets where they do not belong.
            answers.append(gateway.call("GET", f"/v1/jobs?api_key={key}&cursor={key}", key="alice").body)
            answers.append(gateway.call("GET", "/v1/jobs", headers={"Authorization": f"Basic {key}"}).body)
            answers.append(gateway.call("GET", "/v1/jobs", headers={"X-API-Key": key + "x"}).body)
            bad = {"passwords": [PASSWORD, 1], "webhook": 5, "document": {"type": "file", "name": "a"}}
            answers.append(gateway.call("POST", "/v1/documents", bad, key="alice").body)
            answers.append(gateway.upload(locked, key="alice", fields={"password": PASSWORD, "pages": "x"}).body)
            refused = {"password": PASSWORD, "webhook": f"http://10.0.0.1/{HOOK_TOKEN}"}
            answers.append(gateway.upload(locked, key="alice", fields=refused).body)
            answers += [gateway.call("GET", path).body for path in ("/metrics", "/openapi.json", "/health/ready")]
            while sum(call.startswith("POST /hook") for call in calls) < 2:
                assert gateway.call("GET", "/health/live").status == 200
        log = gateway.log.read_text(errors="replace")
    assert job_id in log
    for secret in (key, PASSWORD, WRONG_PASSWORD, SECRET, HOOK_TOKEN):
        assert secret not in log
        assert not [answer for answer in answers if secret.encode() in answer]
    for secret in (key, PASSWORD, WRONG_PASSWORD, SECRET):
        assert not [call for call in calls if secret in call]
    for path in tmp_path.rglob("*.db*"):
        assert key.encode() not in path.read_bytes()


@pytest.mark.parametrize("url", ["postgresql://user:{}@127.0.0.1:1/none", "nonsense://user:{}@host/x"])
def test_the_password_of_a_database_is_not_told_when_it_cannot_be_used(tmp_path: Path, url: str) -> None:
    refused = pytest.raises(AssertionError, match="the gateway ended")
    with refused, running_gateway(tmp_path, GATEWAY__DATABASE=url.format(PASSWORD)):
        pass
    assert PASSWORD not in (tmp_path / "log").read_text()


def test_the_data_of_the_service_is_for_its_user_alone(pdf: bytes, tmp_path: Path) -> None:
    with running_gateway(tmp_path) as gateway:
        gateway.upload(pdf)
        assert (tmp_path / "data").stat().st_mode & 0o077 == 0
        gateway.make_key("alice")
        assert (tmp_path / "data").stat().st_mode & 0o077 == 0


@pytest.fixture(scope="module")
def open_service(tmp_path_factory: pytest.TempPathFactory, pdf: bytes) -> Iterator[tuple[GatewayProcess, list[str]]]:
    """A service without keys that fetches from one host; and the requests to an inner server beside it."""

    def outer(path: str) -> tuple[int, dict[str, str], bytes]:
        if path == "/a.pdf":
            return 200, {"Content-Type": "application/pdf"}, pdf
        if path == "/large":
            return 200, {}, bytes(200_000)
        return 302, {"Location": places[path]}, b""

    with web_server(lambda _path: (200, {}, pdf)) as (inner, inner_requests), web_server(outer) as (port, _requests):
        places = {
            "/inner": f"http://127.0.0.1:{inner}/",
            "/mapped": f"http://[::ffff:127.0.0.1]:{inner}/",
            "/decimal": f"http://2130706433:{inner}/",
            "/name": f"http://localhost:{inner}/",
            "/file": "file:///etc/passwd",
            "/metadata": "http://169.254.169.254/latest/meta-data/",
            "/loop": "/loop",
            "/good": "/a.pdf",
        }
        settings = {
            "GATEWAY__FETCH__ENABLED": "true",
            "GATEWAY__FETCH__ALLOWED_HOSTS": json.dumps([f"127.0.0.1:{port}"]),
            "GATEWAY__FETCH__ALLOW_PRIVATE": "true",
            "GATEWAY__LIMITS__BODY_BYTES": "100000",
            "ENGINE__OPTIONS": json.dumps({"text": EVIL}),
        }
        with running_gateway(tmp_path_factory.mktemp("open"), **settings) as gateway:
            gateway.environment = {**gateway.environment, "OUTER": f"http://127.0.0.1:{port}"}
            yield gateway, inner_requests


def fetch(gateway: GatewayProcess, url: str) -> Any:
    return gateway.call("POST", "/v1/documents", {"document": {"type": "document_url", "document_url": url}})


def test_an_allowed_host_is_fetched_from_and_cannot_send_the_service_elsewhere(
    open_service: tuple[GatewayProcess, list[str]],
) -> None:
    gateway, inner_requests = open_service
    outer = gateway.environment["OUTER"]
    fetched = fetch(gateway, f"{outer}/good")
    assert (fetched.status, fetched.json["name"]) == (202, "a.pdf")
    for path in ("/inner", "/mapped", "/decimal", "/name", "/file", "/metadata"):
        assert fetch(gateway, outer + path).code == "forbidden_url"
    assert fetch(gateway, f"{outer}/loop").code == "fetch_failed"
    assert fetch(gateway, f"{outer}/large").code == "body_too_large"
    assert inner_requests == []


def test_web_pages_of_others_do_not_reach_a_service_without_keys(
    open_service: tuple[GatewayProcess, list[str]], pdf: bytes
) -> None:
    gateway, _ = open_service
    port = gateway.port
    for headers in (
        {"Host": f"evil.example:{port}"},
        {"Host": f"evil.example:{port}", "Origin": f"http://evil.example:{port}"},
        {"Host": f"127.0.0.1:{port}", "Origin": "https://evil.example"},
        {"Host": f"127.0.0.1:{port}", "Origin": "null"},
    ):
        assert gateway.call("GET", "/v1/jobs", headers=headers).code == "permission_denied"
        assert gateway.upload(pdf, headers=headers).code == "permission_denied"
    for headers in ({"Host": f"localhost:{port}"}, {"Origin": f"http://127.0.0.1:{port}"}):
        answer = gateway.call("GET", "/v1/jobs", headers=headers)
        assert answer.status == 200
        assert "Access-Control-Allow-Origin" not in answer.headers


def test_what_a_document_says_does_not_run_in_a_browser(
    open_service: tuple[GatewayProcess, list[str]], pdf: bytes
) -> None:
    gateway, _ = open_service
    name = f'"{SCRIPT}\r\nSet-Cookie: a=b.pdf'
    document = {"type": "file", "name": name, "data_base64": base64.b64encode(pdf).decode()}
    submitted = gateway.call("POST", "/v1/documents", {"document": document})
    job = gateway.ended(submitted.json["id"])
    assert job["status"] == "succeeded"
    link = job["links"]["result"]
    figure = gateway.call("GET", f"/v1/jobs/{job['id']}/figures/p0001-figure-1.png")
    results = {kind: gateway.call("GET", f"{link}?format={kind}") for kind in ("md", "html", "json", "txt", "zip")}
    for answer in (*results.values(), figure):
        assert answer.status == 200
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "Set-Cookie" not in answer.headers
    for answer in (results["html"], results["md"], results["txt"], results["zip"], figure):
        assert answer.headers["Content-Disposition"].startswith("attachment;")
    for kind, media_type in (("md", "text/markdown"), ("txt", "text/plain"), ("json", "application/json")):
        assert results[kind].headers.get_content_type() == media_type
    assert "sandbox" in results["html"].headers["Content-Security-Policy"]
    page = Elements()
    page.feed(results["html"].body.decode())
    assert {"script", "iframe", "svg", "form", "input", "object", "base", "link"} & set(page.tags) == set()
    assert page.tags.count("style") == page.tags.count("html") == 1
    for name, value in page.attributes:
        assert not name.startswith("on"), (name, value)
        assert not value.lower().startswith(("javascript:", "data:text", "0;url")), (name, value)
        assert name != "style" or "url" not in value


class Elements(HTMLParser):
    """Tags and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
