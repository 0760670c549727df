from __future__ import annotations

import pytest

from pagemill.cli.exit_codes import ExitCode, exit_code_of_error, exit_code_of_results
from pagemill.domain import ConversionStatus
from pagemill.domain.errors import PagemillError

GOOD, PARTIAL, BAD = ConversionStatus.SUCCESS, ConversionStatus.PARTIAL_SUCCESS, ConversionStatus.FAILURE


def all_errors(kind: type[PagemillError] = PagemillError) -> list[type[PagemillError]]:
    """The tree; what modules derive from it for themselves keeps the code that it has there."""
    children = [child for child in kind.__subclasses__() if child.__module__ == PagemillError.__module__]
    return [error for child in children for error in (child, *all_errors(child))]


@pytest.mark.parametrize("kind", all_errors())
def test_every_error_has_its_own_code_and_an_exit_status(kind: type[PagemillError]) -> None:
    assert "code" in vars(kind), "each class of the tree has a code of its own"
    assert exit_code_of_error(kind("What happened.", "What to do.")) in ExitCode


def test_codes_are_unique() -> None:
    codes = [kind.code for kind in all_errors()]
    assert len(codes) == len(set(codes))


def test_messages_end_with_the_remedy() -> None:
    assert str(PagemillError("It broke.", "Mend it.")) == "It broke. Mend it."


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        ([], ExitCode.SUCCESS),
        ([GOOD, GOOD], ExitCode.SUCCESS),
        ([GOOD, BAD], ExitCode.PARTIAL),
        ([PARTIAL], ExitCode.PARTIAL),
        ([PARTIAL, BAD], ExitCode.PARTIAL),
        ([BAD, BAD], ExitCode.FAILURE),
    ],
)
def test_exit_status_of_a_run(statuses: list[ConversionStatus], code: ExitCode) -> None:
    assert exit_code_of_results(statuses) is code
