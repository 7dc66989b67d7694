"""Say how different two pictures look, by the small grids of their pixels that `convert.grid` makes."""

SIDE = 64  # of a grid
_WINDOW = 8
# The constants of the structural similarity index, for values from 0 to 255.
_C1 = (0.01 * 255) ** 2
_C2 = (0.03 * 255) ** 2


def distance(first: bytes, second: bytes) -> float:
    """How different two grids look, from 0 for the same to 1: the loss of structure in their brightness, by the
    structural similarity index, and the difference of their colours.
    """
    luma, other_luma = _luma(first), _luma(second)
    starts = range(0, SIDE, _WINDOW)
    windows = [
        [(top + y) * SIDE + left + x for y in range(_WINDOW) for x in range(_WINDOW)]
        for top in starts
        for left in starts
    ]
    similarity = sum(_similarity([luma[at] for at in window], [other_luma[at] for at in window]) for window in windows)
    structure = (1 - similarity / len(windows)) / 2
    return min(1.0, structure + _colour_difference(first, second, luma, other_luma))


def _luma(pixels: bytes) -> list[float]:
    return [
        0.299 * red + 0.587 * green + 0.114 * blue
        for red, green, blue in zip(pixels[::3], pixels[1::3], pixels[2::3], strict=True)
    ]


def _similarity(first: list[float], second: list[float]) -> float:
    """The structural similarity of two windows, from -1 to 1."""
    count = len(first)
    mean, other_mean = sum(first) / count, sum(second) / count
    variance = sum((value - mean) ** 2 for value in first) / count
    other_variance = sum((value - other_mean) ** 2 for value in second) / count
    both = sum((a - mean) * (b - other_mean) for a, b in zip(first, second, strict=True)) / count
    brightness = (2 * mean * other_mean + _C1) / (mean**2 + other_mean**2 + _C1)
    return brightness * (2 * both + _C2) / (variance + other_variance + _C2)


def _colour_difference(first: bytes, second: bytes, luma: list[float], other_luma: list[float]) -> float:
    """The mean difference of red and blue, each without the brightness, from 0 to 1."""
    total = 0.0
    for at, (bright, other_bright) in enumerate(zip(luma, other_luma, strict=True)):
        for channel in (0, 2):
            place = 3 * at + channel
            total += abs((first[place] - bright) - (second[place] - other_bright))
    return total / (2 * len(luma)) / 255
