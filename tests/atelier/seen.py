"""What a person would notice about a drawing: its outline, its colours, and how many of a thing there are."""

import colorsys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property

from PIL import Image, ImageChops, ImageDraw

from penstock_atelier.renderers import scene
from penstock_atelier.renderers.canvas import Layer

SIZE = (480, 360)
_HUES = ((20, "red"), (45, "orange"), (70, "yellow"), (160, "green"), (255, "blue"), (290, "purple"), (345, "pink"))


@cache
def colour_name(red: int, green: int, blue: int) -> str:
    hue, saturation, value = colorsys.rgb_to_hsv(red / 255, green / 255, blue / 255)
    if value < 0.3:
        return "black"
    if saturation < 0.2:
        return "white" if value > 0.75 else "grey"
    name = next((name for limit, name in _HUES if hue * 360 < limit), "red")
    return "brown" if name in ("red", "orange") and value < 0.6 else name


def colours(image: Image.Image) -> Mapping[str, float]:
    """The share of each colour, by name, in what is not transparent."""
    names: Counter[str] = Counter()
    pixels = image.convert("RGBA").tobytes()
    for pixel, count in Counter(pixels[i : i + 4] for i in range(0, len(pixels), 4)).items():
        if pixel[3] > 127:
            names[colour_name(*pixel[:3])] += count
    return defaultdict(float, {name: count / names.total() for name, count in names.items()})


@dataclass(frozen=True)
class Shape:
    """The outline of a drawing without its surroundings."""

    sprite: Image.Image

    @cached_property
    def outline(self) -> Image.Image:
        mask = self.sprite.getchannel("A").point(lambda value: 255 if value > 127 else 0)
        return mask.crop(mask.getbbox())

    @property
    def ratio(self) -> float:
        """Its width for each unit of height."""
        return self.outline.width / self.outline.height

    @property
    def top(self) -> float:
        """How much of its width the uppermost fifth fills."""
        return self._filled(0, 0.2)

    @property
    def middle(self) -> float:
        return self._filled(0.4, 0.6)

    @property
    def foot(self) -> float:
        return self._filled(0.8, 1)

    @cached_property
    def hole(self) -> float:
        """What is enclosed and empty, as inside a handle, as a share of the whole."""
        framed = Image.new("L", (self.outline.width + 2, self.outline.height + 2))
        framed.paste(self.outline, (1, 1))
        ImageDraw.floodfill(framed, (0, 0), 128)
        return framed.histogram()[0] / (self.outline.width * self.outline.height)

    @cached_property
    def lopsided(self) -> float:
        """How much of it differs from its mirror image."""
        mirrored = self.outline.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        differing = ImageChops.difference(self.outline, mirrored)
        return differing.histogram()[255] / (differing.width * differing.height)

    @cached_property
    def colours(self) -> Mapping[str, float]:
        return colours(self.sprite)

    def _filled(self, start: float, end: float) -> float:
        width, height = self.outline.size
        first, last = int(start * height), max(int(start * height) + 1, int(end * height))
        band = self.outline.crop((0, first, width, last))
        return band.histogram()[255] / (band.width * band.height)


def sprites(prompt: str, seed: int = 1) -> Iterator[Shape]:
    """The drawings that the image of a prompt is put together from, without what reaches from edge to edge."""
    for layer in scene.compose(prompt, SIZE, seed).layers:
        if _is_sprite(layer):
            yield Shape(layer.image.resize((100, 100)) if layer.image.width > 100 else layer.image)


def _is_sprite(layer: Layer) -> bool:
    """Things and creatures are drawn on a square sheet; skies, ground and shadows are not."""
    image = layer.image
    return image.width == image.height < min(SIZE) * 1.1 and image.getchannel("A").getextrema() == (0, 255)


def spots(image: Image.Image, colour: str) -> int:
    """How many separate patches of a colour there are, besides specks."""
    small = image.convert("RGB")
    pixels = small.tobytes()
    found = bytes(255 if colour_name(*pixels[i : i + 3]) == colour else 0 for i in range(0, len(pixels), 3))
    mask = Image.frombytes("L", small.size, found)
    count = 0
    while box := mask.point(lambda value: value if value == 255 else 0).getbbox():
        row = mask.crop((box[0], box[1], box[2], box[1] + 1)).tobytes()
        before = mask.histogram()[255]
        ImageDraw.floodfill(mask, (box[0] + row.index(255), box[1]), 1)
        count += before - mask.histogram()[255] > small.width * small.height / 1500
    return count
