"""Axis-aligned boxes in pixels of the page image, origin at the top left."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BoundingBox:
    """A box in pixels of the page image; `right` and `bottom` are exclusive."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        """Width in pixels, never negative."""
        return max(0.0, self.right - self.left)

    @property
    def height(self) -> float:
        """Height in pixels, never negative."""
        return max(0.0, self.bottom - self.top)

    @property
    def area(self) -> float:
        """Area in square pixels."""
        return self.width * self.height

    @property
    def center_x(self) -> float:
        """Middle of the left and right edges."""
        return (self.left + self.right) / 2

    @property
    def center_y(self) -> float:
        """Middle of the top and bottom edges."""
        return (self.top + self.bottom) / 2

    def intersection_area(self, other: BoundingBox) -> float:
        """Area in square pixels that both boxes cover."""
        return self.overlap_x(other) * self.overlap_y(other)

    def overlap_x(self, other: BoundingBox) -> float:
        """Horizontal extent in pixels that both boxes share."""
        return max(0.0, min(self.right, other.right) - max(self.left, other.left))

    def overlap_y(self, other: BoundingBox) -> float:
        """Vertical extent in pixels that both boxes share."""
        return max(0.0, min(self.bottom, other.bottom) - max(self.top, other.top))

    def share_inside(self, other: BoundingBox) -> float:
        """Share (0 to 1) of this box's area that lies inside `other`; 0 for an empty box."""
        return self.intersection_area(other) / self.area if self.area > 0 else 0.0

    @staticmethod
    def around(boxes: Iterable[BoundingBox]) -> BoundingBox:
        """The smallest box that holds all of `boxes`.

        Raises:
            ValueError: `boxes` is empty.
        """
        items = list(boxes)
        if not items:
            raise ValueError("no boxes to enclose")
        return BoundingBox(
            min(b.left for b in items),
            min(b.top for b in items),
            max(b.right for b in items),
            max(b.bottom for b in items),
        )
