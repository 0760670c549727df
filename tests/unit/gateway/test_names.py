from __future__ import annotations

import email.message
import re
import unicodedata
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill.gateway.names import MAX_NAME_BYTES, attachment, document_name

hostile = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from('./\\:\x00\r\n\t"%;*\u202e\u200f\u2066\ud800é\u0301 ~CONconaux1.pdf'),
    ),
    max_size=300,
)


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("report.pdf", "report.pdf"),
        ("Rechnung März 2024.pdf", "Rechnung März 2024.pdf"),
        ("发票.pdf", "发票.pdf"),
        ("a/b/c.pdf", "c.pdf"),
        ("C:\\fakepath\\scan.png", "scan.png"),
        ("../../etc/passwd", "passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        ("/", "document"),
        ("..", "document"),
        (".", "document"),
        ("", "document"),
        (None, "document"),
        ("   ", "document"),
        (".pdf", "document.pdf"),
        (".hidden.pdf", "hidden.pdf"),
        ("folder/", "folder"),
        ("name\x00.pdf", "name.pdf"),
        ("line\r\nSet-Cookie: a=b.pdf", "lineSet-Cookie_ a=b.pdf"),
        ("invoice\u202efdp.exe", "invoicefdp.exe"),
        ("zero\u200bwidth.pdf", "zerowidth.pdf"),
        ("e\u0301.pdf", "\u00e9.pdf"),
        ("a\u00a0b\u3000c.pdf", "a b c.pdf"),
        ("CON", "_CON"),
        ("nul.pdf", "_nul.pdf"),
        ("Com1.tar.gz", "_Com1.tar.gz"),
        ("console.pdf", "console.pdf"),
        ("trailing. . .", "trailing"),
        ("lone\ud800surrogate.pdf", "lonesurrogate.pdf"),
        ("%2e%2e%2fpasswd", "%2e%2e%2fpasswd"),
        ("what? <yes>.pdf", "what_ _yes_.pdf"),
    ],
)
def test_a_name_is_made_fit_for_display(raw: str | None, name: str) -> None:
    assert document_name(raw) == name


def test_a_long_name_keeps_its_suffix() -> None:
    name = document_name("字" * 500 + ".pdf")
    assert name.endswith("字.pdf")
    assert MAX_NAME_BYTES - 4 < len(name.encode()) <= MAX_NAME_BYTES


def test_a_suffix_that_is_none_is_cut_like_the_rest() -> None:
    assert document_name("a." + "b" * 500) == "a." + "b" * (MAX_NAME_BYTES - 3)


@given(hostile)
def test_whatever_is_sent_the_name_is_harmless(raw: str) -> None:
    name = document_name(raw)
    assert 0 < len(name.encode()) <= MAX_NAME_BYTES
    assert not set(name) & set('/\\:<>"|?*')
    assert not name.startswith((".", " "))
    assert not name.endswith((".", " "))
    assert unicodedata.is_normalized("NFC", name)
    assert not {unicodedata.category(character) for character in name} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert name.split(".")[0].rstrip().upper() not in {"CON", "PRN", "AUX", "NUL", "COM1", "LPT9"}


@given(hostile)
def test_a_name_that_was_made_fit_stays_as_it_is(raw: str) -> None:
    assert document_name(document_name(raw)) == document_name(raw)


@given(hostile)
def test_a_download_header_is_one_plain_line_that_gives_the_name_back(raw: str) -> None:
    value = attachment(raw)
    assert re.fullmatch(r"attachment; filename=\"[^\"\\%]+\"; filename\*=UTF-8''[\x21-\x7e]+", value)
    assert unquote(value.rpartition("''")[2]) == document_name(raw)


def test_a_parser_of_headers_reads_the_download_name() -> None:
    message = email.message.Message()
    message["Content-Disposition"] = attachment('発"票";.pdf').partition("; filename*")[0]
    assert message.get_filename() == "__票_;.pdf".replace("票", "_")
    message = email.message.Message()
    message["Content-Disposition"] = re.sub(r'filename="[^"]*"; ', "", attachment("発票.pdf"))
    assert message.get_filename() == "発票.pdf"
