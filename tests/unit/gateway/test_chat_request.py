import base64
import io
import json

import pytest
from PIL import Image

from pagemill.domain.errors import ForbiddenUrlError, LimitExceededError, RequestError, UnsupportedFormatError
from pagemill.gateway.chat_request import read_chat_request
from pagemill.gateway.options import FetchOptions


def url(kind="PNG", size=(1089, 1540)):
    buffer = io.BytesIO()
    Image.new("L", size, 255).save(buffer, kind)
    return f"data:image/{kind.lower()};base64,{base64.b64encode(buffer.getvalue()).decode()}"


def chat(*parts, **fields):
    return {"model": "lightonocr", "messages": [{"role": "user", "content": list(parts)}], **fields}


def image(link):
    return {"type": "image_url", "image_url": {"url": link}}


async def read(request, max_long_side=1540):
    body = request if isinstance(request, bytes) else json.dumps(request).encode()
    return await read_chat_request(
        body, model="lightonocr", max_long_side=max_long_side, fetch=FetchOptions(), max_bytes=2**20
    )


async def test_values_go_on_as_they_came():
    body = (
        b'{ "model":"lightonocr",\n"messages":[{"role":"user","content":"\\u00e9 \xc3\xa9"}], "a":1.0e-1, "x":{}, '
        b'"b":123456789012345678901234567890, "c":[-0.0, 1e22, 5e-324, 0.1], "d":null, "e":"\\u2028</script>\\\\" }'
    )
    sent = (await read(body)).body
    assert list(json.loads(sent).items()) == list(json.loads(body).items())
    assert str(json.loads(sent)["c"]) == str(json.loads(body)["c"])


async def test_of_keys_that_stand_twice_servers_get_the_one_that_was_checked():
    twice = json.dumps(image(url())).replace('{"url": ', '{"url": "http://example.com/a.png", "url": ', 1)
    body = b'{"model": "lightonocr", "messages": [{"role": "user", "content": [%s]}]}' % twice.encode()
    assert b"http" in body
    assert b"http" not in (await read(body)).body


@pytest.mark.parametrize("named", [{}, {"model": None}, {"model": ""}, {"model": "default"}])
async def test_only_the_model_is_written_anew_where_it_is_left_open(named):
    request = {"messages": [{"role": "user", "content": "é"}], "n": 2, "seed": 2**63, "top_p": 0.1, **named}
    assert json.loads((await read(request)).body) == {**request, "model": "lightonocr"}


async def test_image_tokens_are_those_of_the_page():
    chat_request = await read(chat(image(url())))
    assert 2145 <= chat_request.tokens <= 2145 + 50
    assert chat_request.long_side == 1540


async def test_images_count_as_the_server_scales_them():
    large = await read(chat(image(url(size=(2178, 3080)))))
    assert 2145 <= large.tokens <= 2145 + 50
    as_they_are = await read(chat(image(url(size=(2178, 3080)))), max_long_side=0)
    assert as_they_are.tokens > 4 * 2100
    assert as_they_are.long_side == 3080


async def test_all_images_and_the_text_count():
    text = {"type": "text", "text": "x" * 4000}
    first = await read(chat(image(url()), {"type": "image_url", "image_url": url("JPEG")}))
    with_text = await read(chat(text, image(url()), image(url("JPEG"))))
    assert first.tokens >= 2 * 2145
    assert 950 <= with_text.tokens - first.tokens <= 1100


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF", "BMP"])
async def test_kinds_of_images_that_servers_read(kind):
    assert (await read(chat(image(url(kind))))).long_side == 1540


@pytest.mark.parametrize("kind", ["TIFF", "PPM", "ICO"])
async def test_other_kinds_are_refused_by_place(kind):
    with pytest.raises(UnsupportedFormatError, match=r"messages\.0\.content\.1"):
        await read(chat({"type": "text", "text": "x"}, image(url(kind, (200, 200)))))


async def test_an_image_behind_much_metadata_is_measured():
    buffer = io.BytesIO()
    Image.new("L", (300, 200)).save(buffer, "JPEG", exif=b"Exif\0\0" + bytes(60_000))
    link = f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"
    assert (await read(chat(image(link)))).long_side == 300


async def test_an_image_that_says_it_is_huge_is_refused_unread():
    head = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (20_000).to_bytes(4, "big") + (20_000).to_bytes(4, "big")
    with pytest.raises(LimitExceededError, match="20000 x 20000"):
        await read(chat(image(f"data:image/png;base64,{base64.b64encode(head).decode()}")))


@pytest.mark.parametrize(
    ("fields", "answers", "most"),
    [
        ({}, 1, None),
        ({"max_tokens": 100}, 1, 100),
        ({"max_tokens": 100, "max_completion_tokens": 50, "n": 3}, 3, 50),
        ({"max_tokens": True, "n": -1}, 1, None),
        ({"max_tokens": "5", "n": "2"}, 1, None),
    ],
)
async def test_what_it_asks_for_is_known(fields, answers, most):
    request = await read(chat({"type": "text", "text": "x"}, **fields))
    assert (request.answers, request.max_tokens) == (answers, most)


@pytest.mark.parametrize(
    "link", ["http://example.com/", "file:///etc/passwd", "ftp://x", "x", "", "DATA", "javascript:x"]
)
async def test_only_data_urls_go_to_servers(link):
    with pytest.raises(ForbiddenUrlError):
        await read(chat(image(link)))


@pytest.mark.parametrize(
    "link", ["data:image/png;base64,%%%%", "data:image/png,abc", "data:;base64", "DATA:image/png;x,"]
)
async def test_data_urls_without_base64_are_refused(link):
    with pytest.raises((RequestError, UnsupportedFormatError)):
        await read(chat(image(link)))


@pytest.mark.parametrize("content", [None, "text", [], ["text", 1, None], [{"type": "text", "text": "http://x"}]])
async def test_content_without_urls_is_the_servers_to_judge(content):
    request = {"model": "lightonocr", "messages": [{"role": "user", "content": content}]}
    assert (await read(request)).long_side == 0


async def test_a_body_of_very_many_items_is_not_even_read():
    with pytest.raises(RequestError, match="200000 items"):
        await read(b'{"messages":[' + b"{}," * 400_000 + b"{}]}")
