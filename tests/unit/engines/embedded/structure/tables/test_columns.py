from __future__ import annotations

from pagemill.domain import BoundingBox
from pagemill.engines.embedded.elements import Line
from pagemill.engines.embedded.structure.tables.columns import find_separators


def row(top: float, *cells: tuple[float, float]) -> list[Line]:
    return [Line("x", BoundingBox(left, top, right, top + 18)) for left, right in cells]


BODY = [row(100 + 40 * n, (100, 300), (400, 450), (480, 540), (600, 660)) for n in range(4)]


def test_totals_under_a_table_hide_no_columns() -> None:
    totals = [row(300 + 40 * n, (380, 560), (600, 660)) for n in range(3)]
    assert len(find_separators(BODY + totals, 18)) == 3


def test_rows_over_several_columns_in_the_middle_count() -> None:
    crossed = [row(300 + 40 * n, (380, 560), (600, 660)) for n in range(3)]
    assert len(find_separators([BODY[0], *crossed, *BODY[1:]], 18)) == 2
