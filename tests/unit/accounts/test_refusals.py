"""What the record of a refused call says, of bodies that nobody has checked."""

from typing import Any

import pytest

from penstock.accounts.refusals import RefusedFields, refused_fields
from penstock.schema import Call, Caller
from penstock.values import OrgId


def call(**body: Any) -> Call:
    caller = Caller(OrgId("org_1"), "key_1")
    return Call(id="req_1", caller=caller, endpoint="/", at_ms=0, started=0.0, **body)


CHAT = ("chat", None)
IMAGES = ("image", "image")
IMAGE_PART = {"type": "image_url", "image_url": {"url": "https://images.test/a.png"}}


def test_fields_of_json_and_of_a_form_are_read() -> None:
    fields = {"model": "image-1", "user": "bob", "session_id": "s1"}
    expected = RefusedFields("image-1", "image", "bob", "s1", {})
    assert refused_fields(call(json=fields), *IMAGES) == expected
    assert refused_fields(call(form=list(fields.items()), is_form=True), *IMAGES) == expected


@pytest.mark.parametrize("value", [None, 7, "", ["bob"], {}, "b" * 10_000])
def test_what_cannot_be_a_user_is_not_recorded(value: Any) -> None:
    fields = refused_fields(call(json={"user": value, "session_id": value}), *IMAGES)
    assert (fields.user, fields.session_id) == (None, None)


def test_a_long_name_of_a_model_is_cut() -> None:
    assert refused_fields(call(json={"model": "m" * 1000}), *IMAGES).model == "m" * 256


@pytest.mark.parametrize(
    ("body", "modality"),
    [
        ({"messages": [{"content": [{"type": "text"}, IMAGE_PART]}]}, "vision"),
        ({"input": [{"content": [{"type": "input_image"}]}]}, "vision"),
        ({"messages": [{"content": "an image_url"}]}, None),
        ({"messages": IMAGE_PART}, None),
        ({"messages": ["a", None, {"content": ["image_url"]}]}, None),
        ([IMAGE_PART], None),
        (None, None),
    ],
)
def test_a_chat_with_an_image_is_vision(body: Any, modality: str | None) -> None:
    assert refused_fields(call(json=body), *CHAT).modality == modality
