"""The words of a prompt are seen in the image: its place, its time of day, its weather, its colours and numbers."""

import pytest
from PIL import Image

from penstock_atelier.renderers import canvas, scene, sky, words
from penstock_atelier.renderers.canvas import seeded_rng
from penstock_atelier.renderers.palette import PALETTES
from tests.atelier.drawings import check_each
from tests.atelier.seen import colours, spots

SIZE = (240, 180)
PROMPTS = "mountains, a lake in the mountains, a boat, a castle, autumn forest, city at night, underwater, space, a cup"


def image(prompt: str, seed: int = 1, size: tuple[int, int] = SIZE) -> Image.Image:
    return canvas.flatten(scene.compose(prompt, size, seed))


def share(prompt: str, *names: str, upper: float = 0, lower: float = 1) -> float:
    """How much of a part of the image has one of these colours: all of it, or from one height to another."""
    part = image(prompt).crop((0, round(SIZE[1] * upper), SIZE[0], round(SIZE[1] * lower)))
    found = colours(part)
    return sum(found[name] for name in names)


def brightness(prompt: str) -> int:
    return image(prompt).convert("L").resize((1, 1), Image.Resampling.BOX).tobytes()[0]


def is_warm(prompt: str) -> bool:
    red, _, blue = image(prompt).crop((0, 0, SIZE[0], 80)).resize((1, 1), Image.Resampling.BOX).tobytes()
    return red > blue


def test_night_is_dark_and_noon_is_bright() -> None:
    def check(place: str) -> None:
        assert brightness(f"{place} at night") < 80 < 130 < brightness(f"{place} at noon")

    check_each(("hills", "the sea", "a lake"), check)


def test_a_sunset_is_warm_and_noon_is_not() -> None:
    assert is_warm("the sea at sunset")
    assert is_warm("hills at sunset")
    assert not is_warm("the sea at noon")


def test_places_have_their_colours() -> None:
    sand = ("orange", "brown", "yellow", "red")
    assert share("a desert at noon", *sand, upper=0.6) > 0.8
    assert share("the sea at noon", "blue", upper=0.7) > 0.8
    assert share("hills in winter", "white", "blue", "grey", upper=0.7) > 0.8
    assert share("autumn forest", *sand, upper=0.55) > 0.5
    assert share("underwater", "blue", "green", upper=0, lower=0.5) > 0.7
    assert share("space", "black", upper=0, lower=0.5) > 0.5


def test_a_city_has_lit_windows_at_night() -> None:
    assert share("city at night", "yellow", "orange", "white", upper=0.35, lower=0.65) > 0.05
    assert share("hills at night", "yellow", "orange", "white", upper=0.35, lower=0.65) < 0.03


@pytest.mark.parametrize("count", [2, 3, 5])  # one alone has company
def test_as_many_are_seen_as_the_prompt_says(count: int) -> None:
    assert spots(image(f"{count} green lemons", size=(480, 360)), "green") == count


@pytest.mark.parametrize("colour", ["red", "blue", "purple", "green"])
def test_a_thing_has_the_colour_of_its_word(colour: str) -> None:
    others = {"red", "blue", "purple", "green"} - {colour}
    seen = share(f"a {colour} tent in a desert", colour)
    assert seen > max(share(f"a {other} tent in a desert", colour) for other in others) + 0.003


def test_a_colour_word_for_a_place_colours_the_place() -> None:
    def mean(prompt: str) -> tuple[int, ...]:
        return tuple(image(prompt).resize((1, 1), Image.Resampling.BOX).tobytes())

    red, green, blue = (mean(f"{colour} hills") for colour in ("red", "green", "blue"))
    assert red[0] > max(green[0], blue[0]) + 20
    assert green[1] - green[0] > red[1] - red[0] + 20
    assert blue[2] - blue[0] > max(red[2] - red[0], green[2] - green[0]) + 20


def test_every_word_of_the_sky_shows() -> None:
    noon = image("hills at noon")

    def check(name: str) -> None:
        changed = image(f"{name} over hills at noon")
        differing = sum(left != right for left, right in zip(noon.tobytes(), changed.tobytes(), strict=True))
        assert differing > len(noon.tobytes()) / 100

    check_each(sorted(set(words._lexicon(words._SKY).values()) - {"sun"}), check)


def test_snow_is_white_and_rain_hides_the_sun() -> None:
    assert share("snow over a city", "white") > share("a city", "white") + 0.1
    rain = words.read("rain")
    assert sky.choose_light(rain, PALETTES["storm"], SIZE, 60, seeded_rng(1)) is None


def test_the_moon_shines_at_night_and_the_sun_by_day() -> None:
    def light(prompt: str, palette: str) -> sky.Light | None:
        return sky.choose_light(words.read(prompt), PALETTES[palette], SIZE, 60, seeded_rng(1))

    night, day = light("night", "night"), light("noon", "day")
    assert night is not None
    assert day is not None
    assert (night.is_moon, day.is_moon) == (True, False)


def test_what_is_not_named_is_not_drawn() -> None:
    assert sky.paint_sky_objects(set(), PALETTES["day"], SIZE, seeded_rng(1)) == []
    assert sky.paint_weather(words.read("mountains"), PALETTES["day"], SIZE, seeded_rng(1)) == []


def test_the_same_words_and_seed_give_the_same_image_and_another_seed_another() -> None:
    def check(prompt: str) -> None:
        first = image(prompt, size=(96, 72)).tobytes()
        assert (first == image(prompt, size=(96, 72)).tobytes()) is True
        assert (first == image(prompt, seed=2, size=(96, 72)).tobytes()) is False

    check_each(PROMPTS.split(", "), check)


def test_scenes_of_any_shape_can_be_composed() -> None:
    prompts = ("mountains with a lake and a boat", "a cat", "a vase", "city with fireworks", "space", "")

    def check(case: tuple[str, tuple[int, int]]) -> None:
        prompt, size = case
        assert image(prompt, 3, size).size == size

    check_each([(prompt, size) for prompt in prompts for size in ((1, 1), (2, 300), (300, 2), (16, 16))], check)


def test_the_first_layer_covers_everything() -> None:
    def check(prompt: str) -> None:
        first = scene.compose(prompt, SIZE, 1).layers[0]
        assert (first.left, first.top, first.image.size) == (0, 0, SIZE)
        assert first.image.getchannel("A").getextrema() == (255, 255)

    check_each(PROMPTS.split(", "), check)
