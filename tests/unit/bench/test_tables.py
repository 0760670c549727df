from __future__ import annotations

import pytest

from pagemill.bench.quality.tables import (
    Matches,
    Table,
    adjacency_matches,
    grid_similarity,
    score_tables,
    table_from_rows,
    tables_in_html,
    tables_in_markdown,
)

PIPE = "Before\n\n| a | b |\n|:--|--:|\n| 1 | x \\| y |\n\nAfter | not a table"
SPANS = (
    "<table><thead><tr><th rowspan=2>R</th><th colspan='2'>2023</th></tr><tr><th>Q1</th><th>Q2</th></tr></thead>"
    "<tbody><tr><td>N</td><td>1</td><td>2</td></tr></tbody></table>"
)


def one(html: str) -> Table:
    (table,) = tables_in_html(html)
    return table


def test_pipe_table_with_escaped_pipe() -> None:
    (table,) = tables_in_markdown(PIPE)
    assert table.grid() == [["a", "b"], ["1", "x | y"]]


def test_spanning_cells_fill_the_grid_and_stand_once_in_rows() -> None:
    table = one(SPANS)
    assert table.grid() == [["R", "2023", "2023"], ["R", "Q1", "Q2"], ["N", "1", "2"]]
    assert table.rows() == [["R", "2023"], ["Q1", "Q2"], ["N", "1", "2"]]


def test_markdown_and_html_tables_come_in_order() -> None:
    tables = tables_in_markdown(f"{PIPE}\n\n{SPANS}\n\n{PIPE}")
    assert [len(table.grid()[0]) for table in tables] == [2, 3, 2]


@pytest.mark.parametrize(
    "html",
    [
        "<table><tr><td>a<td>b<tr><td>c<td>d</table>",
        "<table><tr><td>a</td><td>b</td></tr><tr><td>c</td><td>d</td></tr>",
    ],
)
def test_sloppy_html_is_read_where_it_is_closed(html: str) -> None:
    tables = tables_in_html(html)
    assert [table.grid() for table in tables] == ([[["a", "b"], ["c", "d"]]] if html.endswith("</table>") else [])


def test_absurd_spans_are_bounded() -> None:
    table = one("<table><tr><td colspan=99999999>a</td><td rowspan=0>b</td></tr></table>")
    assert len(table.grid()[0]) == 1001


def test_adjacency_skips_empty_cells() -> None:
    table = table_from_rows([["a", "", "b"], ["c", "d", ""]])
    # a>b, c>d to the right; a>c below; the empty cells pair with nothing.
    assert adjacency_matches(table, table) == Matches(3, 3, 3)


def test_adjacency_loses_the_pairs_of_a_wrong_cell() -> None:
    expected = table_from_rows([["a", "b"], ["c", "d"]])
    assert adjacency_matches(table_from_rows([["a", "X"], ["c", "d"]]), expected) == Matches(2, 4, 4)


def test_grid_similarity_is_one_for_equal_and_symmetric() -> None:
    table, other = one(SPANS), table_from_rows([["R", "2023"], ["N", "1"]])
    assert grid_similarity(table, table) == pytest.approx(1)
    assert grid_similarity(table, other) == pytest.approx(grid_similarity(other, table))


def test_grid_similarity_of_a_lost_row() -> None:
    expected = table_from_rows([["a", "b"], ["c", "d"], ["e", "f"]])
    assert grid_similarity(table_from_rows([["a", "b"], ["e", "f"]]), expected) == pytest.approx(2 * 4 / (4 + 6))


def test_grid_similarity_of_a_lost_column() -> None:
    expected = table_from_rows([["a", "b", "c"], ["d", "e", "f"]])
    assert grid_similarity(table_from_rows([["a", "c"], ["d", "f"]]), expected) == pytest.approx(2 * 4 / (4 + 6))


def test_grid_similarity_gives_part_credit_for_misread_cells() -> None:
    value = grid_similarity(table_from_rows([["abcx"]]), table_from_rows([["abcd"]]))
    assert value == pytest.approx(0.75)


def test_grid_similarity_of_empty_tables() -> None:
    empty = Table(())
    assert grid_similarity(empty, empty) == 1
    assert grid_similarity(empty, table_from_rows([["a"]])) == 0


def test_tables_are_paired_by_likeness_not_by_order() -> None:
    first, second = table_from_rows([["a", "b"], ["c", "d"]]), table_from_rows([["1", "2"], ["3", "4"]])
    score = score_tables([second, first], [first, second])
    assert score.grid_similarity == pytest.approx(1)
    assert score.adjacency.f1 == 1
    assert score.tables == Matches(2, 2, 2)


def test_a_missing_table_counts_as_nothing_found() -> None:
    first, second = table_from_rows([["a", "b"]]), table_from_rows([["1", "2"]])
    score = score_tables([first], [first, second])
    assert score.grid_similarity == pytest.approx(0.5)
    assert score.adjacency == Matches(1, 1, 2)
    assert score.rows == Matches(1, 1, 2)


def test_more_tables_than_expected_show_in_the_count_only() -> None:
    table = table_from_rows([["a", "b"]])
    score = score_tables([table, table_from_rows([["x", "y"]])], [table])
    assert (score.grid_similarity, score.adjacency.f1) == (1, 1)
    assert score.tables == Matches(1, 2, 1)
