"""Draw on a unit square with round shapes and smooth edges."""

from __future__ import annotations

import math
from collections.abc import Sequence

from PIL import Image, ImageDraw

from penstock_atelier.renderers.canvas import Point, add_shading
from penstock_atelier.renderers.palette import Colour

LARGER = 3  # drawn this many times larger and then reduced, which gives smooth edges
LARGEST = 4200  # pixels of the side at which it is drawn, for memory's sake
INK: Colour = (38, 30, 36)
WHITE: Colour = (250, 247, 240)
Shape = str | Sequence[Point]  # as text: "20,35 50,80", in hundredths of the sheet


class Pen:
    """A square sheet: (0, 0) is its upper left corner, (1, 1) its lower right one."""

    def __init__(self, side: int) -> None:
        self.side = max(8, side)
        self._scale = max(self.side, min(self.side * LARGER, LARGEST))
        self._sheet = Image.new("RGBA", (self._scale, self._scale))
        self._draw = ImageDraw.Draw(self._sheet)

    def render(self) -> Image.Image:
        """The finished RGBA image, shaded so that it looks round."""
        exact = self._scale == self.side * LARGER
        size = (self.side, self.side)
        image = self._sheet.reduce(LARGER) if exact else self._sheet.resize(size, Image.Resampling.HAMMING)
        return add_shading(image, 0.35)

    def polygon(self, points: Shape, colour: Colour) -> None:
        """Fill a shape with straight edges."""
        self._draw.polygon([(x * self._scale, y * self._scale) for x, y in corners(points)], fill=(*colour, 255))

    def blob(self, points: Shape, colour: Colour) -> None:
        """Fill a closed curve through the points."""
        self.polygon(smooth(points), colour)

    def blob_pair(self, points: Shape, colour: Colour) -> None:
        """Fill the same curve left and right of the middle."""
        self.blob(points, colour)
        self.blob([(1 - x, y) for x, y in corners(points)], colour)

    def symmetric_blob(self, points: Shape, colour: Colour) -> None:
        """Fill one symmetric curve, given by its left half, which begins and ends in the middle."""
        left = corners(points)
        self.blob([*left, *((1 - x, y) for x, y in reversed(left[1:-1]))], colour)

    def oval(self, centre: Point, across: float, down: float, colour: Colour, turn: float = 0.0) -> None:
        """Fill an ellipse with these radii, turned by an angle in radians."""
        x, y = centre
        cos, sin = math.cos(turn), math.sin(turn)
        points = []
        for step in range(48):
            angle = math.tau * step / 48
            a, b = math.cos(angle) * across, math.sin(angle) * down
            points.append((x + a * cos - b * sin, y + a * sin + b * cos))
        self.polygon(points, colour)

    def oval_pair(self, centre: Point, across: float, down: float, colour: Colour, turn: float = 0.0) -> None:
        """Fill one oval left and one right of the middle."""
        self.oval(centre, across, down, colour, turn)
        self.oval((1 - centre[0], centre[1]), across, down, colour, -turn)

    def box(self, left: float, top: float, right: float, bottom: float, colour: Colour, round_by: float = 0.0) -> None:
        """Fill a rectangle, with rounded corners if asked."""
        sides = [side * self._scale for side in (left, top, right, bottom)]
        self._draw.rounded_rectangle(sides, round_by * self._scale, fill=(*colour, 255))

    def stroke(self, points: Shape, thick: float, colour: Colour, *, curved: bool = True) -> None:
        """Draw a line with round ends."""
        line = smooth(points, closed=False) if curved else corners(points)
        scaled = [(x * self._scale, y * self._scale) for x, y in line]
        wide = max(1, round(thick * self._scale))
        self._draw.line(scaled, fill=(*colour, 255), width=wide, joint="curve")
        for x, y in (scaled[0], scaled[-1]):
            reach = wide / 2
            self._draw.ellipse((x - reach, y - reach, x + reach, y + reach), fill=(*colour, 255))


def corners(shape: Shape) -> list[Point]:
    """The points of a shape, also where it is given as text."""
    if not isinstance(shape, str):
        return list(shape)
    pairs = (pair.partition(",") for pair in shape.split())
    return [(float(x) / 100, float(y) / 100) for x, _, y in pairs]


def smooth(shape: Shape, *, closed: bool = True) -> list[Point]:
    """A curve through the points (Catmull-Rom), fine enough to look round."""
    points = corners(shape)
    count = len(points)
    curve: list[Point] = []
    for index in range(count if closed else count - 1):
        before, start, end, after = (
            points[(index + step) % count] if closed else points[min(count - 1, max(0, index + step))]
            for step in (-1, 0, 1, 2)
        )
        for step in range(10):
            t = step / 10
            curve.append(
                (_spline(before[0], start[0], end[0], after[0], t), _spline(before[1], start[1], end[1], after[1], t))
            )
    return curve if closed else [*curve, points[-1]]


def _spline(before: float, start: float, end: float, after: float, t: float) -> float:
    return 0.5 * (
        2 * start
        + (end - before) * t
        + (2 * before - 5 * start + 4 * end - after) * t**2
        + (3 * start - before - 3 * end + after) * t**3
    )
