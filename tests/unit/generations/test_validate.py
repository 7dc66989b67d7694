"""Calls to canonical requests: every field, default, limit and message of the media endpoints."""

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InvalidRequest
from penstock.fields import EDIT, IMAGE, VIDEO, Table, UploadedFile
from penstock.generations import validate
from penstock.generations.validate import ValidatedCall
from penstock.schema import Call, Caller
from penstock.settings import Settings
from penstock.values import OrgId
from tests.many_cases import many_cases

PNG = "data:image/png;base64,iVBORw0KGgo="
URL = "https://inputs.example/fox.png"
FILE = UploadedFile(b"\x89PNG", "fox.png", "image/png")
SETTINGS = Settings()
Stage = Callable[[Call, Settings], ValidatedCall]
LEAST: dict[Stage, dict[str, Any]] = {
    validate.image: {"prompt": "a fox", "model": "m"},
    validate.edit: {"prompt": "a fox", "model": "m", "image": PNG},
    validate.video: {"prompt": "a fox", "model": "m"},
}
every_stage = pytest.mark.parametrize("stage", LEAST, ids=lambda stage: str(stage.__name__))


def call(json: Any = None, form: list[tuple[str, str | UploadedFile]] | None = None) -> Call:
    return Call(
        id="req_1",
        caller=Caller(OrgId("org_1"), "key_1"),
        endpoint="/compat/v1/…",
        at_ms=0,
        started=0.0,
        json=json,
        is_form=form is not None,
        form=tuple(form or ()),
    )


def validated(stage: Stage, settings: Settings = SETTINGS, /, **fields: Any) -> ValidatedCall:
    """The required fields of an endpoint and others; `...` removes a field."""
    body = {name: value for name, value in {**LEAST[stage], **fields}.items() if value is not ...}
    return stage(call(body), settings)


def refused(stage: Stage, **fields: Any) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        validated(stage, **fields)
    return caught.value


# --------------------------------------------------------------------------------------------------------- what is kept


@every_stage
def test_required_fields_are_enough_and_no_default_is_added(stage: Stage) -> None:
    call_read = validated(stage)
    assert call_read.request.values == {"prompt": "a fox"}
    assert (call_read.request.model, call_read.request.n, call_read.request.extras) == ("m", 1, {})
    assert (call_read.retention_seconds, call_read.webhook_url, call_read.idempotency_key) == (86_400, None, None)


@every_stage
def test_null_is_the_same_as_a_missing_field(stage: Stage) -> None:
    assert validated(stage, n=None, size=None, user=None, media_retention=None, webhook_url=None) == validated(stage)


@every_stage
def test_unknown_fields_are_passed_on_to_the_provider(stage: Stage) -> None:
    extras = {"seed": 42, "loras": [{"path": "x"}]}
    assert validated(stage, **extras, nothing=None).request.extras == extras


@every_stage
def test_large_unknown_fields_are_refused(stage: Stage) -> None:
    refusal = refused(stage, more=["x" * 65_536], seed=1)
    assert refusal.message == "Extra parameters may have 65536 bytes at most; `more` has most of them."
    assert refusal.param == "more"


@every_stage
def test_fields_for_the_gateway_are_not_passed_on(stage: Stage) -> None:
    call_read = validated(stage, media_retention="7d", webhook_url="https://hooks.example/x")
    assert call_read.request.values == {"prompt": "a fox"}
    assert (call_read.retention_seconds, call_read.webhook_url) == (604_800, "https://hooks.example/x")


@every_stage
@pytest.mark.parametrize("prompt", [" padded ", "日本語のキツネ", "🦊" * 10_000, "a\nb\t\u200d", "\u202ertl"])
def test_prompts_are_not_changed(stage: Stage, prompt: str) -> None:
    assert validated(stage, prompt=prompt).request.values["prompt"] == prompt


def test_metadata_and_idempotency_key_of_a_video() -> None:
    call_read = validated(validate.video, metadata={"order": "17"}, idempotency_key="k" * 256)
    assert (call_read.request.metadata, call_read.idempotency_key) == ({"order": "17"}, "k" * 256)
    assert call_read.request.values == {"prompt": "a fox"}


# ------------------------------------------------------------------------------------------------------ what is refused

# stage, field, values, the message
IMAGES = (validate.image, validate.edit)
ALL = tuple(LEAST)
MUST_NOT_BE_EMPTY = "must not be empty."
FORM_OF_RETENTION = (
    "must be hours or days such as `12h` or `7d`, from `1h` to `30d`, or `0` for outputs that are delivered."
)
REFUSED: list[tuple[tuple[Stage, ...], str, list[Any], str]] = [
    (ALL, "model", [..., None], "is required."),
    (ALL, "model", ["", "  "], MUST_NOT_BE_EMPTY),
    (ALL, "model", [5, ["m"], {}], "must be a string."),
    (ALL, "model", ["m" * 257], "may have at most 256 characters."),
    ((validate.image, validate.video), "prompt", [..., None], "is required."),
    ((validate.image, validate.video), "prompt", ["", " \n\t"], MUST_NOT_BE_EMPTY),
    (ALL, "prompt", [5, ["a"], True], "must be a string."),
    (IMAGES, "n", [0, -1, 11, 10**400, -(10**400)], "must be from 1 to 10."),
    ((validate.video,), "n", [0, 5, 10**400], "must be from 1 to 4."),
    (ALL, "n", ["2", 2.5, True, [1]], "must be an integer."),
    (ALL, "n", [1e300], "must be from 1 to "),
    (ALL, "size", ["big", "1024", "1024×768", "Auto", "1024X768", "１０２４x７６８"],
     "must be WIDTHxHEIGHT or a proportion such as `16:9`."),
    (ALL, "size", ["", " "], MUST_NOT_BE_EMPTY),
    (ALL, "size", ["8x512", "8193x512", "99999x99999"], "must be from 16 to 8192 pixels on each side."),
    (ALL, "size", ["21:1", "1:21", "8192x16"], "may be 20 times as long as it is wide at most."),
    (ALL, "aspect_ratio", ["wide", "1024x768", "", "16/9"], "must be a proportion such as `16:9`."),
    (ALL, "resolution", ["8K", "720", "1080P"], "must be one of `360p`, `480p`, `540p`, `720p`,"),
    (IMAGES, "quality", ["best", ""], "must be one of `standard`, `hd`, `auto`, `low`, `medium`, `high`,"),
    ((validate.image,), "style", ["baroque"], "must be one of `vivid`, `natural`."),
    (IMAGES, "response_format", ["base64"], "must be one of `url`, `b64_json`."),
    (IMAGES, "output_format", ["jpg", "PNG"], "must be one of `png`, `jpeg`, `gif`, `webp`, `avif`, `svg`."),
    (IMAGES, "output_compression", [0, 101, -5], "must be from 1 to 100."),
    (IMAGES, "output_compression", ["80", 80.5], "must be an integer."),
    (IMAGES, "thinking", ["hard"], "must be one of `off`, `on`, `minimal`, `high`."),
    (IMAGES, "thinking_level", ["hard"], "must be one of `off`, `on`, `minimal`, `high`."),
    (IMAGES, "prompt_enhancement", ["yes", True], "must be"),
    ((validate.edit,), "scale_factor", [-1, float("nan"), float("inf"), 10**400], "must be from 0 to 1000000."),
    ((validate.edit,), "scale_factor", ["2"], "must be a number."),
    (ALL, "user", ["u" * 513], "may have at most 512 characters."),
    (ALL, "session_id", ["s" * 257], "may have at most 256 characters."),
    (ALL, "media_retention", ["", "0h", "00", "31d", "721h", "1w", "forever", "12", "1h "], FORM_OF_RETENTION),
    (ALL, "media_retention", [24], "must be a string."),
    (ALL, "webhook_url", ["", "  "], MUST_NOT_BE_EMPTY),
    ((validate.video,), "seconds", ["", " "], MUST_NOT_BE_EMPTY),
    ((validate.video,), "seconds",
     [0, -1, 3601, "0", "ten", "5s", " 5", "1_0", "nan", "inf", "1e3", "٥", 10**400, float("nan"), float("inf")],
     "must be a number above 0 and at most 3600."),
    ((validate.video,), "seconds", [[5], {}, True], "must be a string or a number."),
    ((validate.video,), "duration", ["0", 3601], "must be a number above 0 and at most 3600."),
    ((validate.image, validate.edit, validate.video), "prompt", ["x" * 32_001], "may have at most 32000 characters."),
    ((validate.image, validate.edit, validate.video), "size", ["1" * 65], "may have at most 64 characters."),
    ((validate.image, validate.edit, validate.video), "aspect_ratio", ["1" * 65], "may have at most 64 characters."),
    ((validate.image, validate.edit, validate.video), "media_retention", ["1" * 17],
     "may have at most 16 characters."),
    ((validate.video,), "negative_prompt", ["x" * 5001], "may have at most 5000 characters."),
    ((validate.video,), "idempotency_key", ["k" * 257], "may have at most 256 characters."),
    ((validate.video,), "idempotency_key", ["", " "], MUST_NOT_BE_EMPTY),
    ((validate.video,), "metadata", ["x", ["a"]], "must be an object."),
    ((validate.video,), "metadata",
     [{"a": 1}, {"a": None}, {"a": "x" * 513}, {"k" * 65: ""}, dict.fromkeys(map(str, range(65)), "")],
     "must be at most 64 pairs of strings, names up to 64 and values up to 512 characters."),
]  # fmt: skip


def test_an_invalid_value_is_named_with_what_is_allowed() -> None:
    with many_cases() as each:
        for stages, field, values, words in REFUSED:
            for stage, value in product(stages, values):
                with each.case(f"{getattr(stage, '__name__', stage)}: {field} = {value!r:.40}"):
                    problem = refused(stage, **{field: value})
                    assert problem.message.startswith(f"`{field}` {words}")
                    assert problem.param == field


@pytest.mark.parametrize(
    ("stage", "field", "values"),
    [
        (validate.image, "n", [1, 10]),
        (validate.video, "n", [1, 4]),
        (validate.edit, "n", [1, 10]),
        (validate.image, "size", ["16x16", "8192x8192", "20:1", "1:20", "1792x1024"]),
        (validate.edit, "size", ["auto"]),
        (validate.image, "output_compression", [1, 100]),
        (validate.edit, "scale_factor", [0, 1.5, 20]),
        (validate.image, "prompt", ["x" * 32_000]),
        (validate.video, "negative_prompt", ["", "x" * 5000]),
        (validate.video, "media_retention", ["1h", "720h", "30d"]),
        (validate.video, "metadata", [{}, dict.fromkeys(map(str, range(64)), "x" * 512)]),
        (validate.image, "user", ["u" * 512]),
    ],
)
def test_values_at_the_limits_are_allowed(stage: Stage, field: str, values: list[Any]) -> None:
    for value in values:
        validated(stage, **{field: value})


@pytest.mark.parametrize("body", [None, [], "x", 5, [{"prompt": "a"}]])
@every_stage
def test_the_body_must_be_an_object(stage: Stage, body: Any) -> None:
    with pytest.raises(InvalidRequest, match="The body must be a JSON object"):
        stage(call(body), SETTINGS)


@pytest.mark.parametrize(
    "url", ["http://hooks.example/x", "https://127.0.0.1/", "https://localhost/", "https://hooks.example:444/", "x"]
)
@every_stage
def test_a_bad_webhook_url_is_refused_at_submission(stage: Stage, url: str) -> None:
    assert refused(stage, webhook_url=url).param == "webhook_url"


def test_the_operator_sets_the_longest_retention() -> None:
    short = Settings(media_retention="1h", media_retention_max="2h")
    assert validated(validate.image, short).retention_seconds == 3600
    with pytest.raises(InvalidRequest, match="from `1h` to `2h`"):
        validated(validate.image, short, media_retention="3h")


# -------------------------------------------------------------------------------------------------------------- aliases


@pytest.mark.parametrize(
    ("stage", "fields", "name", "value"),
    [
        (validate.video, {"seconds": "8"}, "seconds", 8),
        (validate.video, {"duration": 8}, "seconds", 8),
        (validate.video, {"duration": "7.5"}, "seconds", 7.5),
        (validate.video, {"seconds": 8.0}, "seconds", 8),
        (validate.video, {"seconds": "8", "duration": 8}, "seconds", 8),
        (validate.image, {"thinking_level": "high"}, "thinking", "high"),
        (validate.edit, {"thinking_level": "off"}, "thinking", "off"),
        (validate.image, {"thinking": "on", "thinking_level": "on"}, "thinking", "on"),
    ],
)
def test_the_other_name_of_a_field_is_accepted(stage: Stage, fields: dict[str, Any], name: str, value: Any) -> None:
    values = validated(stage, **fields).request.values
    assert values == {"prompt": "a fox", name: value}
    assert type(values[name]) is type(value)


@pytest.mark.parametrize(
    ("stage", "fields", "words", "param"),
    [
        (validate.video, {"seconds": 4, "duration": 8}, "`duration` and `seconds` have different values.", "duration"),
        (validate.video, {"duration": 8, "seconds": 4}, "`seconds` and `duration` have different values.", "seconds"),
        (validate.image, {"thinking": "on", "thinking_level": "off"}, "`thinking_level` and", "thinking_level"),
    ],
)  # fmt: skip
def test_two_names_of_a_field_must_have_one_value(stage: Stage, fields: dict[str, Any], words: str, param: str) -> None:
    problem = refused(stage, **fields)
    assert problem.message.startswith(words)
    assert problem.param == param


def test_fields_of_another_endpoint_are_passed_on() -> None:
    assert validated(validate.image, seconds="8").request.extras == {"seconds": "8"}
    assert validated(validate.video, output_format="gif").request.extras == {"output_format": "gif"}


# --------------------------------------------------------------------------------------------------------------- shapes


@pytest.mark.parametrize(
    ("fields", "shape"),
    [
        ({}, "1024x1024"),
        ({"size": "512x256"}, "512x256"),
        ({"size": "512x256", "aspect_ratio": "1:1", "resolution": "720p"}, "512x256"),  # pixels beat proportions
        ({"size": "16:9"}, "16:9"),
        ({"aspect_ratio": "9:16"}, "9:16"),
        ({"size": "16:9", "aspect_ratio": "9:16"}, "16:9"),
        ({"resolution": "720p"}, "1:1"),
    ],
)
def test_the_shape_comes_from_three_fields(fields: dict[str, Any], shape: str) -> None:
    frame = validated(validate.image, **fields).request.frame
    assert frame is not None
    assert frame.size == shape
    assert frame.resolution == (fields.get("resolution") if not frame.exact else None)


def test_auto_is_ignored_without_an_input_image() -> None:
    assert validated(validate.image, size="auto") == validated(validate.image)
    assert validated(validate.video, size="auto") == validated(validate.video)
    assert validated(validate.edit, size="auto").request.values["size"] == "auto"


def test_a_video_has_no_default_shape() -> None:
    assert validated(validate.video).request.frame is None
    frame = validated(validate.video, resolution="1080p").request.frame
    assert frame is not None
    assert frame.scaled(720).size == "1920x1080"


# ------------------------------------------------------------------------------------------------------------- inputs


def test_edits_take_json() -> None:
    call_read = validated(validate.edit, image=[PNG, URL], mask={"image_url": PNG})
    assert [(source.role, source.source) for source in call_read.inputs] == [
        ("image", PNG),
        ("image", URL),
        ("mask", PNG),
    ]


def test_edits_take_forms() -> None:
    form: list[tuple[str, str | UploadedFile]] = [
        ("image[]", FILE),
        ("image[]", FILE),
        ("mask", FILE),
        ("model", "m"),
        ("n", "2"),
    ]
    call_read = validate.edit(call(form=form), SETTINGS)
    assert [source.role for source in call_read.inputs] == ["image", "image", "mask"]
    assert call_read.request.values == {"n": 2}


@pytest.mark.parametrize("prompt", [..., None, "", "  \n"])
def test_an_edit_without_a_prompt_is_valid_and_a_blank_prompt_is_none(prompt: Any) -> None:
    assert validated(validate.edit, prompt=prompt).request.values == {}


@pytest.mark.parametrize(
    ("fields", "words", "param"),
    [
        ({"image": ...}, "`image` is required: send at least one PNG, WebP or JPEG file.", "image"),
        ({"image": []}, "`image` is required", "image"),
        ({"mask": [PNG, PNG]}, "`mask` takes one file.", "mask"),
    ],
)
def test_an_edit_needs_an_image_and_takes_one_mask(fields: dict[str, Any], words: str, param: str) -> None:
    problem = refused(validate.edit, **fields)
    assert problem.message.startswith(words)
    assert problem.param == param


def test_hosts_that_the_operator_allows_are_accepted() -> None:
    home = Settings(egress_allow_hosts=("hooks.internal", "files.internal"))
    call_read = validated(
        validate.video, home, webhook_url="http://hooks.internal:9000/x", input_reference="http://files.internal/f.png"
    )
    assert call_read.webhook_url == "http://hooks.internal:9000/x"
    assert call_read.inputs[0].source == "http://files.internal/f.png"


# ----------------------------------------------------------------------------------------------------------- properties

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
FIELDS = """n size seconds metadata image mask input_reference prompt scale_factor thinking media_retention webhook_url
    aspect_ratio"""


@every_stage
@given(fields=st.dictionaries(st.sampled_from(FIELDS.split()), anything, max_size=4))
def test_any_body_is_accepted_or_refused_with_a_message(stage: Stage, fields: dict[str, Any]) -> None:
    try:
        call_read = validated(stage, **fields)
    except InvalidRequest:
        return
    assert 1 <= call_read.request.n <= 10


# ---------------------------------------------------------------------------------------------------------------- sizes


@every_stage
def test_every_text_field_has_a_limit(stage: Stage) -> None:
    """Lists return the fields of many requests, so none may be as large as a body."""
    tables: dict[Stage, Table] = {validate.image: IMAGE, validate.edit: EDIT, validate.video: VIDEO}
    texts = [row for row in tables[stage].values() if row.types == ("string",)]
    assert [row.name for row in texts if row.max_length is None and not row.one_of] == []


@every_stage
def test_extra_fields_have_a_limit(stage: Stage) -> None:
    """They are stored with the request, also when a recording is replayed and no provider's table is asked."""
    validated(stage, seed=1, style_notes="x" * 60_000)
    assert "65536 bytes at most" in refused(stage, seed=1, style_notes="x" * 66_000).message


def test_only_the_start_of_a_data_uri_is_searched() -> None:
    """Searching all of it would take seconds for one of thirty megabytes."""
    start = "data:image/png" + ";a=b" * 40
    assert validated(validate.edit, image=start + ";base64,iVBORw0KGgo=").inputs
    assert refused(validate.edit, image=start + ";a=b" * 40 + ";base64,iVBORw0KGgo=").param == "image"
