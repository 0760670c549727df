r"""Repairing what LightOnOCR writes: picture links without pictures, and escaped delimiters of formulas.

The `-bbox` variants write `![image](image_1.png)112,80,540,320`: a box in thousandths of the page's width and height.
The others write the link alone. Formulas stand in `$` and `$$`; at times both delimiters of one are escaped.
"""

from __future__ import annotations

import io
import re

from PIL import Image

from pagemill.domain import BoundingBox, Figure, PageImage

_LINK = re.compile(r"!\[image\]\(image_\d+\.(?:png|jpe?g)\)(?:\s?(\d{1,4}),\s?(\d{1,4}),\s?(\d{1,4}),\s?(\d{1,4}))?")
_ESCAPED_MATH = re.compile(r"\\\$(?P<double>\\\$)?(?P<body>(?:(?!\\\$).)+?)\\\$(?(double)\\\$)", re.DOTALL)
_LOOKS_LIKE_MATH = re.compile(r"\\[a-zA-Z]+|[\^_{}=]")
_THOUSAND = 1000
_LEAST_PIXELS = 8
_PICTURE = "<!-- picture -->"


def repair_math(markdown: str) -> str:
    r"""Takes the escapes off pairs of `\$` with a formula between them; amounts of money keep theirs."""

    def replaced(match: re.Match[str]) -> str:
        body = match["body"]
        if not _LOOKS_LIKE_MATH.search(body) or "\n\n" in body:
            return match.group(0)
        mark = "$$" if match["double"] else "$"
        return f"{mark}{body}{mark}"

    return _ESCAPED_MATH.sub(replaced, markdown)


def extract_pictures(markdown: str, page: PageImage) -> tuple[str, tuple[Figure, ...]]:
    """Crops the pictures whose boxes the model wrote, and links to them; a link without a box becomes a comment.

    Args:
        markdown: What the model wrote.
        page: The image that it read.

    Returns:
        The Markdown without coordinates, and the cropped pictures.
    """
    boxes: list[BoundingBox] = []

    def replaced(match: re.Match[str]) -> str:
        if match[1] is None:
            return _PICTURE
        box = _pixels(tuple(int(match[group]) for group in (1, 2, 3, 4)), page)
        if box is None:
            return _PICTURE
        boxes.append(box)
        return f"![figure]({_name(page, len(boxes))})"

    text = _LINK.sub(replaced, markdown)
    return text, _crops(page, boxes) if boxes else ()


def _name(page: PageImage, number: int) -> str:
    return f"p{page.index + 1:04d}-figure-{number}.png"


def _pixels(thousandths: tuple[int, ...], page: PageImage) -> BoundingBox | None:
    """A box in pixels, or None where there is next to nothing in it."""
    left, top, right, bottom = (min(_THOUSAND, value) for value in thousandths)
    box = BoundingBox(
        left * page.width / _THOUSAND,
        top * page.height / _THOUSAND,
        right * page.width / _THOUSAND,
        bottom * page.height / _THOUSAND,
    )
    return box if box.width >= _LEAST_PIXELS and box.height >= _LEAST_PIXELS else None


def _crops(page: PageImage, boxes: list[BoundingBox]) -> tuple[Figure, ...]:
    figures = []
    with Image.open(io.BytesIO(page.data)) as image:
        image.load()
        for number, box in enumerate(boxes, 1):
            buffer = io.BytesIO()
            crop = image.crop((round(box.left), round(box.top), round(box.right), round(box.bottom)))
            crop.save(buffer, "PNG", compress_level=4)
            figures.append(Figure(_name(page, number), buffer.getvalue(), "image/png", box))
    return tuple(figures)
