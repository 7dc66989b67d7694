"""Requests and provider tables: which values are refused, and which fields are sent."""

from typing import Any

import msgspec
import pytest

from penstock.errors import InvalidRequest
from penstock.providers.convert import closest, nest_under, number_text, pixels
from penstock.providers.spec import (
    Model,
    Param,
    Provider,
    Upload,
    converted,
    emulated,
    fixed,
    ignored,
    passthrough,
    refused,
    renamed,
)
from penstock.schema import Request
from penstock.upstream import checks, translate
from penstock.values import InputFile
from tests.unit.upstream.small_model import refusal, request, small_model

IMAGE = InputFile(b"png", "image/png", 4, 4)


def body(brush: Model, wanted: Request, **inputs: list[InputFile]) -> dict[str, Any]:
    values = translate.table_values(wanted, wanted.n, inputs)
    return translate.provider_body(brush, values, wanted.extras)


# ---------------------------------------------------------------------------------------------------------------- rows


@pytest.mark.parametrize(
    ("row", "values", "sent"),
    [
        (passthrough("user"), {"user": "u"}, {"user": "u"}),
        (passthrough("user"), {}, {}),
        (renamed("prompt", "text"), {"prompt": "p"}, {"text": "p"}),
        (renamed("prompt", "input.text"), {"prompt": "p"}, {"input": {"text": "p"}}),
        (converted("seconds", to="duration", convert=number_text), {"seconds": 5}, {"duration": "5"}),
        (converted("frame", to="size", convert=closest("1024x1024")), {"size": "9x9"}, {"size": "1024x1024"}),
        (converted("frame", to=("width", "height"), convert=pixels()), {"size": "64x32"}, {"width": 64, "height": 32}),
        (converted("frame", to=("a.w", "a.h"), convert=pixels()), {"size": "64x32"}, {"a": {"w": 64, "h": 32}}),
        (converted("thinking", to="budget", convert={"high": 9}.get), {"thinking": "off"}, {}),
        (converted("thinking", to=("a", "b"), convert=lambda value: None), {"thinking": "off"}, {}),
        (converted("thinking", to=("a", "b"), convert=lambda value: (None, 1)), {"thinking": "off"}, {"b": 1}),
        (emulated("n", to="count", high=4), {"n": 3}, {"count": 3}),
        (emulated("n"), {"n": 3}, {}),
        (emulated("output_format"), {"output_format": "gif"}, {}),
        (ignored("user")[0], {"user": "u"}, {}),
        (fixed("safety.level", 2), {}, {"safety": {"level": 2}}),
        (passthrough("seed"), {"seed": 0}, {"seed": 0}),  # nothing is left out for being falsy
    ],
)
def test_each_handling(row: Param, values: dict[str, Any], sent: dict[str, Any]) -> None:
    assert body(small_model(row, model_field=None), request("upscale", **values)) == sent


def test_size_aspect_ratio_and_resolution_make_one_frame() -> None:
    brush = small_model(converted("frame", to=("width", "height"), convert=pixels(720)), model_field=None, task="video")
    wanted = request("video", size="9:16", aspect_ratio="1:1", resolution="1080p")
    assert body(brush, wanted) == {"width": 1080, "height": 1920}


def test_input_images_are_sent() -> None:
    brush = small_model(
        converted("images", to="images", convert=len),
        converted("mask", to="mask", convert=lambda found: found.width),
        converted("input_reference", to="start", convert=lambda found: found[0].data),
        model_field=None,
    )
    sent = body(brush, request("upscale"), images=[IMAGE, IMAGE], mask=[IMAGE], input_reference=[IMAGE])
    assert sent == {"images": 2, "mask": 4, "start": b"png"}


def test_the_model_is_in_the_body_or_in_the_path() -> None:
    wanted = request("upscale", prompt="p")
    assert body(small_model(passthrough("prompt")), wanted) == {"prompt": "p", "model": "brush-1"}
    assert body(small_model(passthrough("prompt"), model_field="version"), wanted) == {
        "prompt": "p",
        "version": "brush-1",
    }
    assert body(small_model(passthrough("prompt"), send="POST /run/{model}"), wanted) == {"prompt": "p"}


def test_adjust_body_is_applied_last() -> None:
    brush = small_model(passthrough("prompt"), adjust_body=nest_under("input"))
    assert body(brush, request("upscale", {"seed": 1}, prompt="p")) == {
        "input": {"prompt": "p", "seed": 1},
        "model": "brush-1",
    }


@pytest.mark.parametrize(
    ("given", "defaults", "values"),
    [
        ({}, {"seconds": 4, "frame": "1280x720"}, {"seconds": 4, "size": "1280x720"}),
        ({"seconds": 8, "size": "1:1"}, {"seconds": 4, "frame": "1280x720"}, {"seconds": 8, "size": "1:1"}),
        ({"resolution": "1080p"}, {"frame": "1280x720"}, {"resolution": "1080p"}),
        ({}, {}, {}),
    ],
)
def test_a_new_video_has_the_defaults_of_its_model(
    given: dict[str, Any], defaults: dict[str, Any], values: dict[str, Any]
) -> None:
    rows = [passthrough(name, default=default) for name, default in defaults.items()]
    assert translate.with_defaults(request("video", **given), small_model(*rows, task="video")).values == values


def test_an_image_request_gets_no_defaults() -> None:
    wanted = request("image", prompt="p")
    assert translate.with_defaults(wanted, small_model(passthrough("frame", default="512x512"))) == wanted


def test_the_model_decides_the_task() -> None:
    """Of a call that edits images, which may be an upscale."""
    assert translate.with_defaults(request("edit"), small_model(task="upscale")).task == "upscale"


# --------------------------------------------------------------------------------------------------------------- limits


@pytest.mark.parametrize(
    ("row", "values", "words", "param"),
    [
        (passthrough("prompt", required=True), {}, "`prompt` is required by lab/brush.", "prompt"),
        (passthrough("prompt", max_length=3), {"prompt": "four"},
         "`prompt` of lab/brush may have at most 3 characters.", "prompt"),
        (passthrough("prompt", max_length=4, counts_utf16=True), {"prompt": "🦊🦊🦊"},
         "`prompt` of lab/brush may have at most 4 characters.", "prompt"),
        (passthrough("quality", one_of=("low", "high")), {"quality": "hd"},
         "`quality` of lab/brush must be one of `low`, `high`.", "quality"),
        (converted("thinking", to="x", convert=str, one_of=("off", "high")), {"thinking": "on"},
         "`thinking` of lab/brush must be one of `off`, `high`.", "thinking"),
        (ignored("thinking")[0], {"thinking": "high"}, "`thinking` of lab/brush must be `off`.", "thinking"),
        (refused("negative_prompt")[0], {"negative_prompt": "x"}, "`negative_prompt` is not supported by lab/brush.",
         "negative_prompt"),
        (passthrough("seconds", low=2, high=10), {"seconds": 1},
         "`seconds` of lab/brush must be from 2 to 10.", "seconds"),
        (passthrough("scale_factor", low=0.5, high=2**32), {"scale_factor": 0.1},
         "`scale_factor` of lab/brush must be from 0.5 to 4294967296.", "scale_factor"),
        (passthrough("seconds", high=10), {"seconds": 10.5}, "`seconds` of lab/brush must be at most 10.", "seconds"),
        (passthrough("scale_factor", low=2), {"scale_factor": 1.5}, "`scale_factor` of lab/brush must be at least 2.",
         "scale_factor"),
        (refused("frame")[0], {"size": "16:9"}, "`size` is not supported by lab/brush.", "size"),
        (converted("frame", to="x", convert=str, required=True), {}, "`size` is required by lab/brush.", "size"),
    ],
)  # fmt: skip
def test_values_that_the_model_does_not_allow(row: Param, values: dict[str, Any], words: str, param: str) -> None:
    problem = refusal(small_model(row), request("upscale", **values))
    assert (problem.message, problem.param) == (words, param)


@pytest.mark.parametrize(
    ("row", "values"),
    [
        (ignored("thinking")[0], {"thinking": "off"}),
        (
            ignored("prompt_enhancement")[0],
            {"prompt_enhancement": "on"},
        ),  # ignored when unsupported, says the interface
        (ignored("quality")[0], {"quality": "hd"}),
        (emulated("n", to="n", high=4), {"n": 10}),  # the rest is emulated
        (passthrough("seconds", low=2, high=10), {"seconds": 2}),
        (passthrough("seconds", low=2, high=10), {"seconds": 10}),
        (passthrough("prompt", max_length=4), {"prompt": "🦊🦊🦊🦊"}),
        (passthrough("prompt", max_length=4, counts_utf16=True), {"prompt": "🦊🦊"}),
        (refused("negative_prompt")[0], {}),
        (passthrough("images", required=True), {}),  # images are counted apart
        (fixed("x", 1), {}),
    ],
)
def test_values_that_the_model_allows(row: Param, values: dict[str, Any]) -> None:
    checks.check(small_model(row), request("upscale", **values))


@pytest.mark.parametrize(
    ("row", "count", "words"),
    [
        (None, 1, "`image` is not supported by lab/brush."),
        (refused("images")[0], 1, "`image` is not supported by lab/brush."),
        (passthrough("images", required=True), 0, "`image` is required by lab/brush."),
        (passthrough("images", max_items=2), 3, "`image` of lab/brush takes at most 2."),
        (passthrough("images", max_items=2), 2, None),
        (passthrough("images", min_items=2), 1, "`image` of lab/brush takes at least 2."),
        (passthrough("images", min_items=2), 2, None),
        (passthrough("images", min_items=2), 0, None),
        (passthrough("images"), 0, None),
        (ignored("images")[0], 3, None),
    ],
)
def test_the_number_of_input_images_is_checked(row: Param | None, count: int, words: str | None) -> None:
    brush = small_model(*([row] if row else []))
    if words is None:
        checks.check_inputs(brush, {"images": count})
        return
    with pytest.raises(InvalidRequest) as caught:
        checks.check_inputs(brush, {"images": count})
    assert (caught.value.message, caught.value.param) == (words, "image")


@pytest.mark.parametrize(
    ("name", "public_name"), [("images", "image"), ("mask", "mask"), ("input_reference", "input_reference")]
)
def test_errors_use_the_interfaces_names_of_inputs(name: str, public_name: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        checks.check_inputs(small_model(), {name: 1})
    assert (caught.value.message, caught.value.param) == (
        f"`{public_name}` is not supported by lab/brush.",
        public_name,
    )


# -------------------------------------------------------------------------------------------------------------- sending


def test_forms_have_text_and_files() -> None:
    provider = Provider(
        slug="lab", name="Lab", docs="", base_url="https://lab.example/", models=(), headers={"x-v": "2"}
    )
    upload = Upload(b"png", "image/png", "a.png")
    fields = {"prompt": "p", "n": 2, "f": 0.5, "on": True, "image[]": [upload, upload], "o": {"a": 1}, "none": None}
    sent = translate.http_request(provider, small_model(body="form"), fields, "")
    assert sent.form == (
        ("prompt", "p"), ("n", "2"), ("f", "0.5"), ("on", "true"), ("image[]", upload), ("image[]", upload),
        ("o", '{"a":1}'),
    )  # fmt: skip
    assert (sent.url, sent.headers, sent.body) == ("https://lab.example/make", {"x-v": "2"}, b"")


def test_the_path_may_contain_the_model() -> None:
    provider = Provider(slug="lab", name="Lab", docs="", base_url="https://lab.example", models=())
    sent = translate.http_request(
        provider, small_model(send="POST /models/{model}:run", body="msgpack"), {"a": b"x"}, ""
    )
    assert sent.url == "https://lab.example/models/brush-1:run"
    assert sent.headers["content-type"] == "application/msgpack"
    assert msgspec.msgpack.decode(sent.whole_body) == {"a": b"x"}


# ---------------------------------------------------------------------------------------------------------------- seeds


@pytest.mark.parametrize(
    ("row", "extras", "first", "sent"),
    [
        (passthrough("seed"), {"seed": 7}, 0, 7),
        (passthrough("seed"), {"seed": 7}, 4, 11),
        (passthrough("seed"), {}, 4, None),  # the provider chooses
        (passthrough("seed", default=0), {}, 0, None),
        (passthrough("seed", default=0), {}, 4, 4),
        (passthrough("seed", default=0), {"seed": None}, 4, 4),
        (passthrough("seed", low=0, high=9), {"seed": 8}, 1, 9),
        (passthrough("seed", low=0, high=9), {"seed": 8}, 2, 0),
        (passthrough("seed", low=1, high=9), {"seed": 8}, 3, 2),
        (passthrough("seed"), {"seed": "seven"}, 4, "seven"),  # a model of which nothing is known
        (passthrough("seed"), {"seed": True}, 4, True),
        (ignored("seed")[0], {"seed": 7}, 4, None),
        (None, {"seed": 7}, 4, 11),  # no row: an extra field
        (None, {}, 4, None),
    ],
)
def test_later_outputs_of_a_request_have_later_seeds(
    row: Param | None, extras: dict[str, Any], first: int, sent: Any
) -> None:
    brush = small_model(row) if row else small_model()
    wanted = translate.with_seed_of_part(request(extras=extras), brush, first)
    assert body(brush, wanted).get("seed") == sent
