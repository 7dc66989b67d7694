"""Fields for images are found under the names that models give them."""

from typing import Any

import pytest

from penstock.providers.derive.draft import Draft
from penstock.providers.derive.inputs import edit_rows, mask_colour, take_inputs, video_rows
from penstock.providers.spec import Param
from penstock.values import EDIT_VIDEO, InputFile

TEXT = {"type": "string"}
TEXTS = {"type": "array", "items": TEXT, "maxItems": 3, "minItems": 2}
IMAGES = [InputFile(b"", "image/png", 8, 8, uploaded_name=f"i{number}") for number in range(3)]


def draft(required: list[str], **properties: Any) -> Draft:
    return Draft({"properties": properties, "required": required})


def name(image: InputFile) -> str:
    return image.uploaded_name


def test_images_of_an_edit() -> None:
    cases: list[tuple[Draft, tuple[str, ...], Any, int | None]] = [
        (draft(["image_url"], image_url=TEXT), ("image_url",), "i0", 1),
        (draft([], image_urls=TEXTS), ("image_urls",), ["i0", "i1", "i2"], 3),
        (draft([], image=TEXT, reference_images=TEXTS), ("image", "reference_images"), ("i0", ["i1", "i2"]), 4),
        (draft(["garment_photo"], garment_photo=TEXT), ("garment_photo",), "i0", 1),
    ]
    for fields, to, value, most in cases:
        inputs = take_inputs(fields, "image")
        row = edit_rows(inputs, name)[0]
        assert row.convert is not None
        assert (row.to, row.convert(IMAGES), row.max_items) == (to, value, most)
    optional = take_inputs(draft([], image=TEXT, mask=TEXT), "image")
    assert (optional.exist, optional.are_required) == (True, False)
    assert [row.name for row in edit_rows(optional, name)] == ["images", "mask"]


def rows(fields: Draft) -> dict[str, Param]:
    return {row.name: row for row in video_rows(take_inputs(fields, "video"), name, EDIT_VIDEO)}


def test_frames_and_references_of_a_video() -> None:
    both = rows(draft(["image"], image=TEXT, last_frame=TEXT, reference_images=TEXTS))["input_reference"]
    assert both.convert is not None
    assert (both.to, both.convert(IMAGES[:1]), both.max_items) == (("image", "last_frame"), ("i0", None), 2)
    references = rows(draft([], reference_image_urls=TEXTS))["input_reference"]
    assert (references.frames, references.max_items, references.min_items, references.required) == (0, 3, 2, False)
    one = rows(draft(["first_frame_image"], first_frame_image=TEXT))["input_reference"]
    assert (one.to, one.max_items, one.required) == (("first_frame_image",), 1, True)


def test_a_video_that_is_edited() -> None:
    """Under whatever name; images beside a required video stay, and so does a video beside a required image."""
    for field in ("video_url", "video", "input_video", "video_path"):
        needed = draft([field], **{field: TEXT, "image_urls": TEXTS})
        found = rows(needed)
        video = found[EDIT_VIDEO]
        assert video.convert is not None
        assert (video.to, video.convert(IMAGES[:1]), video.required) == ((field,), "i0", True)
        assert found["input_reference"].handling == "refused"
        assert [left.name for left in needed.take_rest()] == ["image_urls"]
    either = rows(draft([], video_url=TEXT, image_url=TEXT))
    assert (either[EDIT_VIDEO].required, either["input_reference"].to) == (False, ("image_url",))
    both = draft(["video_url", "image_url"], video_url=TEXT, image_url=TEXT)
    assert list(rows(both)) == ["input_reference"]
    assert [left.name for left in both.take_rest()] == ["video_url"]
    assert take_inputs(draft(["video"], video=TEXT), "image").video is None


@pytest.mark.parametrize(
    ("described", "colour"),
    [
        ("Black pixels are inpainted, white pixels are preserved", "black"),
        ("White areas will be replaced, black areas stay", "white"),
        ("", "white"),
    ],
)
def test_the_colour_of_a_mask_is_read_from_its_description(described: str, colour: str) -> None:
    assert mask_colour({"properties": {"mask": {"type": "string", "description": described}}}) == colour
