from __future__ import annotations

import pytest

from pagemill.engines.openai.repetition import LoopWatch, find_loop

PROSE = (
    "The council approved the second phase of the river project on 14 March 2025. Engineers will remove two weirs, "
    "replant 4.6 km of bank and widen the floodplain near the old mill. Residents raised questions about noise.\n\n"
)

LOOPS = {
    "a sentence": PROSE + "The work goes on. " * 40,
    "a paragraph": PROSE
    + ("This paragraph stands here again and again, as loops of paragraphs do, word by word. " * 2 + "\n\n") * 8,
    "a word": PROSE + "and " * 200,
    "chinese": "河流治理年度报告。" + "专家认为水质改善的关键在于减少农药的使用。" * 30,
    "a counting line": PROSE + "".join(f"Item number {i} of the long list of things to do\n" for i in range(40)),
    "a table of the same row without end": "| a | b |\n|---|---|\n" + "| Total | 0.00 EUR |\n" * 120,
    "html rows": "<table>" + "<tr><td>Total amount</td><td>0</td></tr>" * 60,
    "dots without end": PROSE + "." * 4000,
}

PAGES = {
    "prose": PROSE * 1,
    "forty dot leaders": "".join(f"Chapter {i} {'.' * 60} {i * 7}\n" for i in range(1, 41)),
    "an empty ruled table": "| | | | |\n|---|---|---|---|\n" + "|  |  |  |  |\n" * 45,
    "an empty html table": "<table>" + "<tr><td></td><td></td><td></td></tr>" * 45 + "</table>",
    "ruled lines of a form": "Name: " + "_" * 60 + "\n" + ("_" * 70 + "\n") * 30,
    "a numbered grid": "".join("| " + " | ".join(str(i * 10 + j) for j in range(10)) + " |\n" for i in range(40)),
    "a timetable": "| Train | Days | Stop |\n|---|---|---|\n" + "| daily | not on Sundays | yes |\n" * 20,
    "a hymn": ("Glory, glory, hallelujah!\n" * 3 + "His truth is marching on.\n\n") * 5,
    "a numbered list": "".join(f"{i}. {name} of the board\n" for i, name in enumerate(["Chair", "Clerk", "Head"] * 3)),
    "a bibliography": "".join(
        f"[{i}] Author {chr(65 + i)}. A title of its own {i * 7}. Press, {1990 + i}.\n" for i in range(11)
    ),
    "a rule": "-" * 200,
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_are_found_and_what_came_before_is_kept(name: str) -> None:
    text = LOOPS[name]
    loop = find_loop(text)
    assert loop is not None
    kept = text[: loop.start + len(loop.unit)]
    assert len(kept) < len(text) * 0.75
    if text.startswith(PROSE):
        assert kept.startswith(PROSE)


@pytest.mark.parametrize("name", PAGES)
def test_what_pages_really_repeat_is_left_alone(name: str) -> None:
    text = PAGES[name]
    assert find_loop(text) is None
    for end in range(1, len(text), 97):
        assert find_loop(text[:end]) is None


def test_the_watch_finds_a_loop_while_it_grows() -> None:
    watch = LoopWatch()
    fed = 0
    loop = None
    for piece in [PROSE, *["The work goes on. "] * 1000]:
        fed += len(piece)
        if (loop := watch.feed(piece)) is not None:
            break
    assert loop is not None
    assert fed < len(PROSE) + 2000
