"""What is sent for an asked shape, resolution, sound or prompt, in tables written by hand and derived ones."""

from typing import Any

import pytest

from penstock.errors import InvalidRequest
from penstock.json_schema import read_schema
from penstock.providers.convert import data_uri
from penstock.providers.derive.table import tables
from penstock.providers.fal.queue import model as fal_model
from penstock.providers.live import LiveModel
from penstock.providers.spec import Model, Task
from penstock.values import INPUT_VIDEOS
from tests.providers import sweep
from tests.providers.recordings import known_providers

PROMPT = {"prompt": "a fox"}


def model_of(slug: str, name: str, task: Task = "video") -> Model:
    return next(model for model in known_providers()[slug].models if model.id == name and model.op.task == task)


def derived(makes: str, task: Task, **properties: Any) -> Model:
    """A model whose input has these fields beside the prompt."""
    written = {"properties": {"prompt": {"type": "string"}, **properties}, "required": ["prompt"]}
    live = LiveModel(input=read_schema(written, {}))
    return fal_model("fal/a/b", "a/b", task, tables("a/b", live, makes, data_uri)[task], (), takes_extras=False)


@pytest.mark.parametrize(
    ("slug", "name", "field", "of_input"),
    [
        ("dashscope", "wan-3", "ratio", "adaptive"),
        ("dashscope", "wan-3-prime", "ratio", "adaptive"),
        ("openrouter", "kling-3", "aspect_ratio", None),
        ("openrouter", "kling-3-pro", "aspect_ratio", None),
    ],
)
def test_the_shape_of_the_first_frame_is_left_to_the_model(
    slug: str, name: str, field: str, of_input: str | None
) -> None:
    """The frame is 720x1280; the nearest of the listed shapes would be another one for most pictures."""
    model = model_of(slug, name)

    def sent(values: dict[str, Any], images: int) -> Any:
        body = sweep.body(model, {**PROMPT, **values}, {"input_reference": images})
        return body.get("parameters", body).get(field)

    assert sent({}, 1) == of_input
    assert sent({"aspect_ratio": "1:1"}, 1) == "1:1"
    assert sent({}, 0) == "16:9"


def test_wan_3_may_be_silent() -> None:
    body = sweep.body(model_of("dashscope", "wan-3"), {**PROMPT, "generate_audio": False}, {})
    assert body["parameters"]["audio"] is False
    with pytest.raises(InvalidRequest, match="generate_audio"):
        sweep.body(model_of("dashscope", "wan-2.7"), {**PROMPT, "generate_audio": False}, {})


def test_who_asks_minimax_for_1080p_gets_no_less() -> None:
    model = model_of("minimax", "minimax/h3")
    asked = ("768p", "1080p", "1440p")
    sent = [sweep.body(model, {**PROMPT, "resolution": each}, {})["resolution"] for each in asked]
    assert sent == ["768P", "2K", "2K"]


@pytest.mark.parametrize(
    ("name", "longest"),
    [("recraft-v3", 1000), ("kling-2.6", 2500), ("hailuo-2.3", 2000), ("veo-3.1", 20_000), ("vidu-q3", 2000)],
)
def test_prompts_that_are_too_long_for_fal_are_refused_here(name: str, longest: int) -> None:
    model = model_of("fal", name, "image" if name == "recraft-v3" else "video")
    sweep.body(model, {"prompt": "x" * longest}, {})
    with pytest.raises(InvalidRequest, match=f"at most {longest} characters"):
        sweep.body(model, {"prompt": "x" * (longest + 1)}, {})


@pytest.mark.parametrize(
    ("makes", "field", "values", "asked", "sent"),
    [
        ("video", "quality", ["360p", "540p", "720p", "1080p"], "1080p", "1080p"),
        ("image", "image_size", ["1K", "2K"], "2K", "2K"),
        ("image", "size", ["1K", "2K", "3K"], "2K", "2K"),
        ("image", "output_megapixels", ["0.25", "0.5", "1", "2", "4"], "2K", "4"),
        ("image", "resolution", ["match_input_image", "0.5 MP", "1 MP", "2 MP", "4 MP"], "2K", "4 MP"),
        ("image", "megapixels", ["1", "0.25"], "1K", "1"),
        ("image", "size", ["1K", "2K", "custom"], "2K", "2K"),
    ],
)
def test_a_resolution_is_asked_for_by_any_name(
    makes: str, field: str, values: list[str], asked: str, sent: str
) -> None:
    ratio = {"type": "string", "enum": ["1:1", "16:9"]}
    resolution = {"type": "string", "enum": values}
    task: Task = "video" if makes == "video" else "image"
    model = derived(makes, task, aspect_ratio=ratio, **{field: resolution})
    assert sweep.body(model, {**PROMPT, "resolution": asked}, {})[field] == sent
    assert field not in sweep.body(model, {**PROMPT, "aspect_ratio": "16:9"}, {})


def test_a_resolution_is_refused_by_a_model_that_has_none() -> None:
    ratio = {"type": "string", "enum": ["1:1", "16:9"]}
    for model in (derived("image", "image", aspect_ratio=ratio), derived("video", "video", aspect_ratio=ratio)):
        assert sweep.body(model, {**PROMPT, "aspect_ratio": "16:9"}, {})["aspect_ratio"] == "16:9"
        with pytest.raises(InvalidRequest, match="`resolution` is not supported"):
            sweep.body(model, {**PROMPT, "resolution": "1080p"}, {})


def test_a_needed_resolution_is_always_sent() -> None:
    written = {
        "properties": {"prompt": {"type": "string"}, "resolution": {"type": "string", "enum": ["720p", "480p"]}},
        "required": ["prompt", "resolution"],
    }
    rows = tables("a/b", LiveModel(input=read_schema(written, {})), "video", data_uri)["video"]
    model = fal_model("fal/a/b", "a/b", "video", rows, (), takes_extras=False)
    assert sweep.body(model, PROMPT, {})["resolution"] == "720p"
    assert sweep.body(model, {**PROMPT, "resolution": "480p"}, {})["resolution"] == "480p"


def test_no_more_frames_than_the_most() -> None:
    frames = {"type": "integer", "default": 81, "minimum": 17, "maximum": 240}
    rate = {"type": "integer", "default": 16}
    model = derived("video", "video", num_frames=frames, frames_per_second=rate)
    assert sweep.body(model, {**PROMPT, "seconds": 15}, {})["num_frames"] == 233


def test_frames_between_those_of_an_input_are_no_length() -> None:
    added = {"type": "integer", "default": 1, "minimum": 1, "maximum": 4}
    rate = {"type": "integer", "default": 8}
    video = {"type": "string"}
    written = {"properties": {"video_url": video, "num_frames": added, "fps": rate}, "required": ["video_url"]}
    live = LiveModel(input=read_schema(written, {}))
    rows = tables("a/interpolate", live, "video", data_uri)["video"]
    assert not any(row.name == "seconds" and row.to for row in rows)
    assert any(row.name in INPUT_VIDEOS for row in rows)
