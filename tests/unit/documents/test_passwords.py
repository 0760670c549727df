from __future__ import annotations

from pathlib import Path

import pytest

from pagemill.documents import PasswordBook
from pagemill.documents.passwords import password_encodings
from pagemill.domain.errors import ConfigurationError


def test_a_named_password_comes_before_the_common_ones() -> None:
    book = PasswordBook.from_lines(["first", "bank/*.pdf\tgeheim", "", "second\r"])
    assert book.candidates("bank/june.pdf") == ("geheim", "first", "second")
    assert book.candidates("other.pdf") == ("first", "second")


def test_patterns_match_the_file_name_alone_as_well() -> None:
    assert PasswordBook.from_lines(["june.pdf\tx"]).candidates("deep/down/june.pdf") == ("x",)


def test_spaces_belong_to_a_password() -> None:
    assert PasswordBook.from_lines([" a b "]).candidates("x") == (" a b ",)


def test_a_password_file_may_start_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "passwords").write_bytes("\ufeffæøå\r\nx\ty\n".encode())
    assert PasswordBook.from_file(tmp_path / "passwords").candidates("x") == ("y", "æøå")


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_an_unreadable_password_file_is_a_configuration_error(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "passwords"
    if content:
        path.write_bytes(content)
    with pytest.raises(ConfigurationError, match="passwords"):
        PasswordBook.from_file(path)


def test_passwords_are_not_shown() -> None:
    assert "secret" not in repr(PasswordBook(("secret",), (("a", "secret"),)))


def test_both_encodings_are_tried() -> None:
    assert password_encodings("æ") == (b"\xc3\xa6", b"\xe6")
    assert password_encodings("密") == ("密".encode(),)


def test_saslprep_drops_soft_hyphens_and_normalises() -> None:
    assert b"SaSLprep" in password_encodings("SªSL\xadprep")
