"""What people send who mean harm, against the service as it runs: over real sockets, in a process of its own."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import quote

import pytest

from gateway_process import GatewayProcess, form

pytestmark = pytest.mark.slow


def job_of(service: GatewayProcess, pdf: bytes, key: str = "alice", **more: Any) -> str:
    submitted = service.upload(pdf, key=key, **more)
    assert submitted.status == 202, submitted.body
    return str(submitted.json["id"])


def operations(service: GatewayProcess) -> list[tuple[str, str]]:
    """Method and path of everything that the service offers."""
    paths = service.call("GET", "/openapi.json").json["paths"]
    return [(method.upper(), path) for path, methods in paths.items() for method in methods]


def filled(path: str, job_id: str) -> str:
    """A path with values for what it leaves open."""
    values = {"job_id": job_id, "batch_id": "batch_1", "name": "p0001-figure-1.png", "number": "1", "model": "a"}
    return path.format_map(values)


# Who may do what


def test_without_a_valid_key_nothing_is_told_or_taken(service: GatewayProcess) -> None:
    open_to_all = {"/health/live", "/health/ready", "/metrics", "/version"}
    checked = 0
    for method, path in operations(service):
        if path in open_to_all:
            continue
        for key in (None, "pm_wrong", "x" * 5000, service.keys["alice"] + "x", service.keys["alice"].upper()):
            answer = service.call(method, filled(path, "job_1"), key=key)
            assert (answer.status, answer.code) == (401, "invalid_api_key"), (method, path)
            checked += 1
    assert checked > 20


def test_a_key_is_asked_for_before_the_body_is_read(service: GatewayProcess) -> None:
    with service.connect() as connection:
        connection.sendall(b"POST /v1/documents HTTP/1.1\r\nHost: a\r\nContent-Length: 900000\r\n")
        connection.sendall(b"Content-Type: multipart/form-data; boundary=x\r\n\r\n")
        assert connection.recv(2**16).startswith(b"HTTP/1.1 401")


def test_a_key_that_is_withdrawn_is_refused_with_the_next_request(service: GatewayProcess) -> None:
    service.make_key("carol")
    assert service.call("GET", "/v1/jobs", key="carol").status == 200
    service.cli("keys", "revoke", "carol")
    assert service.call("GET", "/v1/jobs", key="carol").code == "invalid_api_key"


def test_the_jobs_of_others_do_not_exist(service: GatewayProcess, pdf: bytes) -> None:
    job_id = job_of(service, pdf)
    service.ended(job_id, key="alice")
    unknown = "job_" + "0" * 32
    checked = 0
    for method, path in operations(service):
        if "{job_id}" not in path:
            continue
        of_job, of_none = (service.call(method, filled(path, each), key="bob") for each in (job_id, unknown))
        assert (of_job.status, of_job.code) == (404, "job_not_found"), (method, path, of_job.body)
        assert of_job.body.replace(job_id.encode(), unknown.encode()) == of_none.body
        checked += 1
    assert checked >= 5
    assert service.call("GET", f"/v1/jobs/{job_id}", key="alice").json["status"] == "succeeded"


def test_lists_and_batches_show_no_jobs_of_others(service: GatewayProcess, pdf: bytes) -> None:
    body, media_type = form([("file", "a.pdf", pdf)], {})
    batch = service.call("POST", "/v1/batches", body, key="alice", headers={"Content-Type": media_type}).json
    for path in ("/v1/jobs", f"/v1/jobs?batch_id={batch['id']}", "/v1/jobs?limit=500"):
        listed = service.call("GET", path, key="bob").json["data"]
        assert batch["jobs"][0]["id"] not in {job["id"] for job in listed}
    for method in ("GET", "DELETE"):
        assert service.call(method, f"/v1/batches/{batch['id']}", key="bob").code == "job_not_found"
    mine = service.call("GET", "/v1/jobs?limit=1", key="alice").json
    theirs = service.call("GET", f"/v1/jobs?cursor={mine['next_cursor']}", key="bob").json["data"]
    assert not {job["id"] for job in theirs} & {
        job["id"] for job in service.call("GET", "/v1/jobs?limit=500", key="alice").json["data"]
    }


def test_idempotency_keys_of_two_people_have_nothing_to_do_with_each_other(service: GatewayProcess, pdf: bytes) -> None:
    headers = {"Idempotency-Key": "order-1"}
    first = job_of(service, pdf, headers=headers)
    other = service.upload(pdf + b"\n", key="bob", headers=headers)
    assert other.status == 202
    assert other.json["id"] != first
    assert job_of(service, pdf, headers=headers) == first
    assert service.upload(pdf + b"\n", key="alice", headers=headers).code == "job_conflict"


@pytest.mark.parametrize(
    "header", ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "X-Original-URL", "X-Rewrite-URL"]
)
def test_headers_do_not_turn_a_request_into_another(service: GatewayProcess, pdf: bytes, header: str) -> None:
    job_id = job_of(service, pdf)
    service.ended(job_id, key="alice")
    answer = service.call("GET", f"/v1/jobs/{job_id}?_method=DELETE", key="alice", headers={header: "DELETE"})
    assert answer.json["id"] == job_id
    assert service.call("GET", "/v1/jobs", headers={header: "/health/live"}).status == 401
    assert service.call("get", f"/v1/jobs/{job_id}", key="alice").status == 405


# Names and paths


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("../../../../etc/cron.d/job", "job"),
        ("..\\..\\windows\\system32\\a.pdf", "a.pdf"),
        ("/etc/passwd", "passwd"),
        ("C:\\a.pdf", "a.pdf"),
        ("%2e%2e%2fa.pdf", "%2e%2e%2fa.pdf"),
        ("a\x00.pdf", "a.pdf"),
        ("..", "document"),
        ("", "document"),
        ("invoice\u202efdp.exe", "invoicefdp.exe"),
        ("<img src=x onerror=alert(1)>.pdf", "_img src=x onerror=alert(1)_.pdf"),
        ("CON.pdf", "_CON.pdf"),
        ("n" * 900 + ".pdf", "n" * 195 + ".pdf"),
    ],
)
def test_names_of_documents_never_become_paths(service: GatewayProcess, pdf: bytes, name: str, shown: str) -> None:
    encoded = {"type": "file", "name": name, "data_base64": base64.b64encode(pdf).decode()}
    submitted = service.call("POST", "/v1/documents", {"document": encoded}, key="alice")
    assert submitted.status == 202, submitted.body
    assert submitted.json["name"] == shown
    job_id = submitted.json["id"]
    service.ended(job_id, key="alice")
    for path in service.folder.rglob("*"):
        assert not {"etc", "windows", "cron.d", "passwd", shown} & set(path.relative_to(service.folder).parts)
    for result_format in ("md", "json", "html", "zip"):
        answer = service.call("GET", f"/v1/jobs/{job_id}/result?format={result_format}", key="alice")
        assert answer.status == 200
        assert b"\r" not in answer.headers.as_bytes().replace(b"\r\n", b"")


def test_a_name_in_a_form_may_be_anything(service: GatewayProcess, pdf: bytes) -> None:
    for raw in (b"\xff\xfe.pdf", b'a\\"; filename=evil.pdf', b"a.pdf\r\nX-Evil: 1", b"\xe2\x80\xae.pdf"):
        answer = service.upload(pdf, raw, key="alice")
        assert answer.status in (202, 422), answer.body
        assert "X-Evil" not in answer.headers


@pytest.mark.parametrize(
    "piece",
    [
        "../../../../etc/passwd",
        "..%2f..%2f..%2f..%2fetc%2fpasswd",
        "%2e%2e/%2e%2e/etc/passwd",
        "%252e%252e%252fetc%252fpasswd",
        "..\\..\\etc\\passwd",
        "..%5c..%5cetc%5cpasswd",
        "%c0%ae%c0%ae%c0%afetc%c0%afpasswd",
        "..%00/etc/passwd",
        "%00",
        "a%0d%0aSet-Cookie:x=1",
        "/etc/passwd",
        "//etc/passwd",
        "file:///etc/passwd",
        "x" * 3000,
        "%f0%9f%92%a9",
        "';drop table jobs;--",
    ],
)
def test_ids_and_names_in_paths_lead_nowhere_else(service: GatewayProcess, pdf: bytes, piece: str) -> None:
    job_id = job_of(service, pdf)
    service.ended(job_id, key="alice")
    for path in (
        f"/v1/jobs/{piece}",
        f"/v1/jobs/{piece}/result",
        f"/v1/jobs/{piece}/events",
        f"/v1/jobs/{job_id}/figures/{piece}",
        f"/v1/jobs/{job_id}/result?format={quote(piece)}",
        f"/v1/batches/{piece}",
        f"/{piece}",
    ):
        line = f"GET {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {service.keys['alice']}\r\n"
        answer = service.raw(line.encode() + b"Connection: close\r\n\r\n")
        assert answer.startswith((b"HTTP/1.1 404", b"HTTP/1.1 400", b"HTTP/1.1 422")), (path, answer[:200])
        assert b"root:" not in answer
        assert b"Set-Cookie" not in answer.partition(b"\r\n\r\n")[0]


# Requests that the service is to send


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "gopher://127.0.0.1:6379/_INFO",
        "ftp://127.0.0.1/a",
        "http://127.0.0.1/",
        "http://localhost/",
        "http://0.0.0.0/",
        "http://[::]/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[0:0:0:0:0:ffff:7f00:1]/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://0177.0.0.1/",
        "http://127.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[fd00:ec2::254]/",
        "http://user@127.0.0.1/",
        "http://127.0.0.1:22/",
        "HTTP://127.0.0.1/",
        " http://127.0.0.1/",
        "//127.0.0.1/",
        "jar:http://127.0.0.1!/",
        "/etc/passwd",
    ],
)
def test_no_url_makes_the_service_look_inside(service: GatewayProcess, pdf: bytes, url: str) -> None:
    asked = {"document": {"type": "document_url", "document_url": url}}
    answer = service.call("POST", "/v1/documents", asked, key="alice")
    assert (answer.status, answer.code) == (403, "forbidden_url")
    answer = service.upload(pdf, key="alice", fields={"webhook": url})
    assert (answer.status, answer.code) == (403, "forbidden_url")


# Numbers, and what browsers make of results


@pytest.mark.parametrize(
    "query",
    [
        "jobs?limit=0",
        "jobs?limit=-1",
        "jobs?limit=9223372036854775808",
        "jobs?limit=" + "9" * 5000,
        "jobs?limit=1e3",
        "jobs?limit=NaN",
        "jobs?cursor=x",
        "jobs?cursor=%00",
        "jobs?cursor=" + base64.urlsafe_b64encode(b"[" * 360).decode(),
        "jobs?cursor=" + base64.urlsafe_b64encode(b'[1e999, "a"]').decode(),
        "jobs?cursor=" + base64.urlsafe_b64encode(b'[NaN, "a"]').decode(),
        "jobs?cursor=" + base64.urlsafe_b64encode(b"[{}, []]").decode(),
        "jobs?created_after=9999999999999999999999",
        "jobs?created_before=-99999999999999",
        "jobs?created_after=0001-01-01T00:00:00%2B14:00",
        "jobs?created_before=9999-12-31T23:59:59-14:00",
        "jobs?status=unknown",
        "jobs?batch_id=%00",
        "jobs/JOB/events?last_event_id=99999999999999999999",
        "jobs/JOB/events?last_event_id=-1",
        "jobs/JOB/result?format=x",
        "jobs/JOB/result?page=99999999999999999999",
        "jobs/JOB/result?pages=99999999999999999999",
    ],
)
def test_numbers_beyond_all_measure_are_no_fault_of_the_service(
    service: GatewayProcess, pdf: bytes, query: str
) -> None:
    job_id = job_of(service, pdf)
    service.ended(job_id, key="alice")
    answer = service.call("GET", "/v1/" + query.replace("JOB", job_id), key="alice")
    assert answer.status < 500, answer.body


@pytest.mark.parametrize("value", ["9" * 30, "-1", "1.5", "NaN", "", "a\u00e9"])
def test_the_id_of_the_last_event_may_be_nonsense(service: GatewayProcess, pdf: bytes, value: str) -> None:
    job_id = job_of(service, pdf)
    service.ended(job_id, key="alice")
    headers = {"Last-Event-ID": value.encode("latin-1").decode("latin-1")}
    answer = service.call("GET", f"/v1/jobs/{job_id}/events", key="alice", headers=headers)
    assert answer.status in (200, 204, 400, 422), answer.body
