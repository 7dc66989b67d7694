"""The schema of a model's parameters: the interface's fields, within the limits of the model's table."""

from dataclasses import replace
from typing import Any

import jsonschema_rs  # comes with schemathesis
import pytest

from penstock.fields import TABLES
from penstock.models import model_schema
from penstock.providers import discover, openai_compatible
from penstock.providers.gpt_transcription import DIARIZE, GPT_4O, WHISPER_1
from penstock.providers.row_names import INTERNAL
from penstock.providers.spec import (
    RASTER,
    Operation,
    Param,
    Result,
    converted,
    emulated,
    fixed,
    ignored,
    input_video,
    passthrough,
    refused,
    renamed,
)
from penstock.values import EDIT_VIDEO, SHORT_SIDES
from penstock_atelier import table


def op(*params: Param, task: Any = "image") -> Operation:
    return Operation(task=task, send="POST /", params=params, read=lambda reply: Result())


def properties(*ops: Operation) -> dict[str, Any]:
    found = model_schema.schema(ops)["properties"]
    assert isinstance(found, dict)
    return found


def test_fields_have_type_description_limits_default_and_handling() -> None:
    shown = properties(op())
    assert shown["n"] == {
        "type": "integer",
        "description": "How many images.",
        "minimum": 1,
        "maximum": 10,
        "default": 1,
        "x-handling": "emulated",
    }
    assert shown["output_format"]["enum"] == ["png", "jpeg", "gif", "webp", "avif", "svg"]
    assert properties(op(RASTER))["output_format"]["enum"] == ["png", "jpeg", "gif", "webp", "avif"]
    assert shown["size"]["default"] == "1024x1024"
    assert shown["prompt"]["x-handling"] == "renamed"


def test_a_format_that_the_gateway_makes_has_the_default_of_the_interface() -> None:
    own = Param(name="output_format", handling="emulated", one_of=("mp3", "wav"), default="wav")
    shown = properties(op(own, task="sound"))["output_format"]
    assert (shown["default"], shown["enum"]) == ("mp3", ["mp3", "wav"])


def test_a_model_without_times_offers_no_form_that_needs_them() -> None:
    forms = [properties(each)["response_format"]["enum"] for each in (GPT_4O, DIARIZE, WHISPER_1)]
    untimed, with_speakers, timed = forms
    assert untimed == ["json", "text"]
    assert with_speakers == ["json", "text", "srt", "vtt", "verbose_json", "diarized_json"]
    assert timed == ["json", "text", "srt", "vtt", "verbose_json"]


@pytest.mark.parametrize("task", sorted(TABLES))
def test_every_field_of_the_endpoint_is_described(task: str) -> None:
    schema = model_schema.schema([op(task=task)])
    assert list(schema["properties"]) == list(TABLES[task])
    assert set(schema["required"]) == {name for name, field in TABLES[task].items() if field.required}
    assert all({"type", "description"} <= shown.keys() for shown in schema["properties"].values())


def test_images_and_durations_have_several_types() -> None:
    assert properties(op(task="edit"))["image"]["type"] == ["string", "array"]
    assert properties(op(task="video"))["input_reference"]["type"] == ["object", "array", "string"]
    assert properties(op(task="video"))["seconds"]["type"] == ["string", "number"]


@pytest.mark.parametrize(
    ("row", "name", "narrowed"),
    [
        (passthrough("quality", one_of=("low", "hd")), "quality", {"enum": ["low", "hd"], "x-handling": "passthrough"}),
        (passthrough("prompt", max_length=100), "prompt", {"maxLength": 100}),
        (converted("thinking", to="x", convert=str, one_of=("off", "high")), "thinking", {"enum": ["off", "high"]}),
        (converted("thinking", "x", str, one_of=("off", "high")), "thinking_level", {"enum": ["off", "high"]}),
        (ignored("thinking")[0], "thinking", {"enum": ["off"], "x-handling": "ignored"}),
        (ignored("style")[0], "style", {"enum": ["vivid", "natural"], "x-handling": "ignored"}),
        (emulated("n", to="n", high=4), "n", {"maximum": 10, "minimum": 1}),  # more than four is emulated
        (passthrough("output_compression", low=50, high=90, default=75), "output_compression",
         {"minimum": 50, "maximum": 90, "default": 75}),
        (converted("frame", "x", str, default="9:16"), "size", {"default": "9:16", "x-handling": "converted"}),
        (converted("frame", to="x", convert=str, default="512x512"), "resolution", {"enum": list(SHORT_SIDES)}),
    ],
)  # fmt: skip
def test_the_models_table_narrows_the_limits(row: Param, name: str, narrowed: dict[str, Any]) -> None:
    shown = properties(op(row))[name]
    assert {key: shown.get(key) for key in narrowed} == narrowed


def test_the_providers_name_for_a_field_is_shown_where_it_differs() -> None:
    rows = (
        renamed("prompt", to="input.text"),
        converted("frame", to=("width", "height"), convert=str),
        converted("user", to="user", convert=str),
        emulated("n"),
        renamed("seed", to="random_seed"),
    )
    shown = properties(op(*rows))
    expected = {"prompt": "input.text", "size": "width, height", "user": None, "n": None, "seed": "random_seed"}
    assert {name: shown[name].get("x-sent-as") for name in expected} == expected


def test_only_size_has_the_default_of_the_frame() -> None:
    shown = properties(op(converted("frame", to="x", convert=str, default="512x512")))
    assert "default" not in shown["aspect_ratio"]
    assert "default" not in shown["resolution"]


def test_refused_fields_are_left_out() -> None:
    assert "negative_prompt" not in properties(op(*refused("negative_prompt"), task="video"))
    shown = properties(op(*refused("frame")))
    assert not {"size", "aspect_ratio", "resolution"} & shown.keys()


@pytest.mark.parametrize(
    ("row", "shown"),
    [
        (passthrough("seed", low=0, high=9),
         {"type": "number", "minimum": 0, "maximum": 9, "x-handling": "passthrough"}),
        (passthrough("audio", one_of=(True, False), default=True),
         {"type": "boolean", "enum": [True, False], "default": True}),
        (passthrough("mode", one_of=("std", "pro")), {"type": "string", "enum": ["std", "pro"]}),
        (passthrough("scene", max_length=9), {"type": "string", "maxLength": 9}),
        (passthrough("loras"), {"type": ["string", "number", "boolean", "array", "object"]}),
    ],
)  # fmt: skip
def test_fields_of_the_provider_are_listed(row: Param, shown: dict[str, Any]) -> None:
    found = properties(op(row))[row.name]
    assert {key: found[key] for key in shown} == shown


def test_fixed_fields_are_left_out() -> None:
    assert "safe" not in properties(op(fixed("safe", True)))
    assert "" not in properties(op(fixed("safe", True)))


def test_rows_that_callers_cannot_write_are_left_out() -> None:
    for provider in discover():
        for model in provider.models:
            shown = model_schema.schema([model.op])["properties"].keys()
            assert not shown - TABLES[model.op.task].keys() & {*INTERNAL}, f"{provider.slug} {model.id}"


def test_an_input_video_is_shown_as_the_field_that_takes_it() -> None:
    video = input_video(EDIT_VIDEO, to="video_url", convert=str)
    schema = model_schema.schema([op(video, *refused("input_reference"), task="video")])
    assert "input_reference" in schema["required"]
    assert schema["properties"]["input_reference"]["x-sent-as"] == "video_url"
    images = converted("input_reference", to="image_url", convert=str)
    both = model_schema.schema([op(images, replace(video, required=False), task="video")])
    assert "input_reference" not in both["required"]
    assert both["properties"]["input_reference"]["x-sent-as"] == "image_url, video_url"


def test_required_are_the_fields_that_all_operations_require() -> None:
    image, edit = op(passthrough("prompt", required=True)), op(passthrough("images", required=True), task="edit")
    assert set(model_schema.schema([image])["required"]) == {"prompt", "model"}
    assert set(model_schema.schema([edit])["required"]) == {"image", "model"}
    assert set(model_schema.schema([image, edit])["required"]) == {"model"}
    with_frame = op(converted("frame", to="x", convert=str, required=True))
    assert set(model_schema.schema([with_frame])["required"]) == {"prompt", "model", "size"}


def test_limits_of_two_providers_are_combined() -> None:
    one = op(
        passthrough("quality", one_of=("low",)),
        passthrough("prompt", max_length=10),
        passthrough("seed", low=5, high=9),
    )
    other = op(
        passthrough("quality", one_of=("hd",)), passthrough("prompt", max_length=20), passthrough("seed", low=0, high=7)
    )
    shown = properties(one, other)
    assert shown["quality"]["enum"] == ["low", "hd"]
    assert shown["prompt"]["maxLength"] == 20
    assert (shown["seed"]["minimum"], shown["seed"]["maximum"]) == (0, 9)
    unlimited = properties(one, op(passthrough("seed")))
    assert unlimited["prompt"]["maxLength"] == 32_000, "the limit of the interface"
    assert not {"minimum", "maximum"} & unlimited["seed"].keys()


def test_every_schema_is_valid() -> None:
    known = {id(model.op): model.op for provider in discover() for model in provider.models}
    for operation in (*known.values(), *openai_compatible.OPERATIONS.values()):
        schema = model_schema.schema([operation])
        jsonschema_rs.meta.validate(schema)
        assert set(schema["required"]) <= schema["properties"].keys(), f"{operation.task} {operation.send}"


def test_a_valid_request_fits_its_schema() -> None:
    schema = model_schema.schema([table.SKETCH])
    least = {"model": "atelier/sketch", "prompt": "a fox"}
    assert jsonschema_rs.is_valid(schema, {**least, "n": 2, "size": "16:9", "seed": 7})
    for bad in ({"n": 11}, {"output_format": "bmp"}, {"prompt": 5}, {"thinking": "high"}, {"seed": -1}):
        assert not jsonschema_rs.is_valid(schema, {**least, **bad})
    assert not jsonschema_rs.is_valid(schema, {"prompt": "a fox"})
