import pytest

from pagemill.gateway.mistral_tables import take_tables

PIPES = "| a | b |\n| --- | --- |\n| 1 | 2 |"
HTML = "<table>\n<tr><th>a</th><th>b</th></tr>\n<tr><td>1</td><td>2</td></tr>\n</table>"


def take(markdown, wanted):
    taken = []

    def replacement(content):
        taken.append(content)
        return f"[T{len(taken)}]"

    return take_tables(markdown, wanted, replacement), taken


@pytest.mark.parametrize("table", [PIPES, HTML])
def test_a_table_becomes_pipes(table):
    assert take(f"Before\n\n{table}\n\nAfter", "markdown") == ("Before\n\n[T1]\n\nAfter", [PIPES])


def test_a_pipe_table_becomes_html():
    text, (table,) = take(f"{PIPES}\n", "html")
    assert text == "[T1]\n"
    assert "".join(table.split()) == (
        "<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td>2</td></tr></tbody></table>"
    )


def test_an_html_table_stays_as_it_is_in_html():
    assert take(HTML, "html") == ("[T1]", [HTML])


def test_tables_keep_their_order():
    text, taken = take(f"{HTML}\n\n{PIPES}\n\nx\n\n{HTML}", "html")
    assert text == "[T1]\n\n[T2]\n\nx\n\n[T3]"
    assert [table.startswith("<table>\n<tr>") for table in taken] == [True, False, True]


def test_spans_leave_empty_cells():
    table = '<table><tr><td rowspan="2">a</td><td colspan="2">b</td></tr><tr><td>c</td><td>d</td></tr></table>'
    assert take(table, "markdown")[1] == ["| a | b |  |\n| --- | --- | --- |\n|  | c | d |"]


def test_texts_of_cells_are_safe_in_pipes():
    table = "<table><tr><td>a|b<br>c &lt; d</td></tr><tr><td><b>e</b>\nf</td></tr></table>"
    assert take(table, "markdown")[1] == ["| a\\|b c < d |\n| --- |\n| e f |"]


@pytest.mark.parametrize(
    "text", [f"```\n{PIPES}\n```", f"```html\n{HTML}\n```", "a | b", "<table>", r"\<table></table>", "", "no table"]
)
def test_what_is_no_table_stays(text):
    assert take(text, "markdown") == (text, [])


@pytest.mark.parametrize(
    "attributes",
    ['colspan="100000000"', 'rowspan="99999999" colspan="99999999"', 'colspan="-1"', 'colspan="x"', 'colspan="²"'],
)
def test_spans_that_no_page_has_are_harmless(attributes):
    _, (table,) = take(f"<table><tr><td {attributes}>a</td><td>b</td></tr></table>", "markdown")
    assert "a" in table
    assert len(table) < 20_000


def test_a_wide_table_with_many_rows_is_bounded():
    table = '<table><tr><td colspan="1000">a</td></tr>' + "<tr><td>b</td></tr>" * 2000 + "</table>"
    assert take(table, "markdown")[1] == [table]


def test_script_does_not_get_into_html():
    _, (table,) = take("| a |\n| --- |\n| <script>x</script><b onclick='y'>b</b> |", "html")
    assert "script" not in table
    assert "onclick" not in table
