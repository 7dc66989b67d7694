"""Recognise the fields of a model that take input images or a video, and make the rows for them."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.json_schema import Schema
from penstock.providers.convert import each_image, file_url, first_and_last, first_image
from penstock.providers.derive.draft import Draft, ProviderField, is_list_of_text, is_text, limit
from penstock.providers.spec import Param, converted, input_video, refused
from penstock.values import InputFile

Encode = Callable[[InputFile], Any]

_FIRST = tuple(
    """image_url image input_image input_image_url start_image_url start_image first_frame_url first_frame_image
    first_frame_image_url first_frame image_path img img_url init_image init_image_url source_image source_image_url
    base_image base_image_url main_image image_file reference_image_url reference_image image_prompt image_to_upscale
    person_image_url model_image input_img photo""".split()
)
_SEVERAL = tuple(
    """image_urls images input_images image_input input_image_urls img_urls image_list reference_image_urls
    reference_images ref_image_urls subject_reference_image_urls reference_images_urls input_urls
    input_references""".split()
)
_LAST = tuple(
    """end_image_url last_frame_url last_frame_image_url last_frame_image last_frame tail_image_url end_image last_image
    last_image_url tail_image end_frame_url end_frame""".split()
)
_VIDEO = tuple("video_url video input_video_url input_video source_video_url source_video video_path video_in".split())
_IMAGE_WORD = re.compile(r"image|img|photo", re.IGNORECASE)
_BLACK_IS_EDITED = re.compile(r"black\b[^.;,]{0,40}\b(inpaint|edit|replac|chang|remov|fill|generat)", re.IGNORECASE)
_URL_LENGTH_MAX = 16_384  # characters that a field may have which is for URLs, and not for whole files
_MASK = ("mask_url", "mask_image_url", "mask", "mask_image", "image_mask")


@dataclass(frozen=True, slots=True)
class Inputs:
    """The fields that take images: one, several at once, the last frame, and a mask; and the one that takes a video."""

    first: ProviderField | None = None
    several: ProviderField | None = None
    last: ProviderField | None = None
    mask: ProviderField | None = None
    video: ProviderField | None = None

    @property
    def are_required(self) -> bool:
        return any(field is not None and field.is_required for field in (self.first, self.several))

    @property
    def need_video(self) -> bool:
        return self.video is not None and self.video.is_required

    @property
    def exist(self) -> bool:
        return self.first is not None or self.several is not None


def take_inputs(draft: Draft, makes: str) -> Inputs:
    """Take the fields for images and for a video out of a draft.

    A list beside a single image of a video stays: it means other things with each model. So do images beside a video
    that the model needs, because a call has one or the other.
    """
    video = _take_video(draft) if makes == "video" else None
    if video is not None and video.is_required:
        return Inputs(video=video)
    first = draft.take(_FIRST, is_text)
    several = None if makes == "video" and first else draft.take(_SEVERAL, is_list_of_text)
    if first is None and several is None:
        first = draft.take_required(_IMAGE_WORD, is_text)
    last = draft.take(_LAST, is_text) if makes == "video" and first else None
    mask = draft.take(_MASK, is_text) if makes == "image" and (first or several) else None
    return Inputs(first, several, last, mask, video)


def _take_video(draft: Draft) -> ProviderField | None:
    """The field for a video; it stays if the model needs an image, too."""
    needs_image = any(name in _FIRST + _SEVERAL or _IMAGE_WORD.search(name) for name in draft.required)
    return None if needs_image else draft.take(_VIDEO, is_text)


def _is_for_urls(field: ProviderField) -> bool:
    """Whether a field is too short for a file in base64, so that it takes nothing but a URL."""
    item = field.schema.get("items") or field.schema
    longest = limit(item, "maxLength")
    return longest is not None and longest <= _URL_LENGTH_MAX


def _way(encode: Encode, *fields: ProviderField | None) -> tuple[Encode, bool]:
    """How the files of a row are sent, and whether by URL: all of them, if one of its fields takes nothing else."""
    by_url = any(field is not None and _is_for_urls(field) for field in fields)
    return (file_url if by_url else encode), by_url


def mask_colour(schema: Schema) -> str:
    """The colour of the area to edit in a model's mask: white, unless the description of the field says black."""
    properties = schema.get("properties") or {}
    described = " ".join(str((properties.get(name) or {}).get("description") or "") for name in _MASK)
    return "black" if _BLACK_IS_EDITED.search(described) else "white"


def edit_rows(inputs: Inputs, encode: Encode) -> tuple[Param, ...]:
    """The rows for `image` and `mask` of an edit."""
    mask = inputs.mask
    if mask is None:
        return (_images_row(inputs, encode),)
    convert, by_url = _way(encode, mask)
    masks = converted("mask", to=mask.name, convert=convert, required=mask.is_required, by_url=by_url)
    return _images_row(inputs, encode), masks


def _images_row(inputs: Inputs, encode: Encode) -> Param:
    first, several = inputs.first, inputs.several
    encode, by_url = _way(encode, first, several)
    if several is None:
        assert first is not None, "there is a row only where images are taken"
        convert: Any = first_image(encode)
        return converted("images", to=first.name, convert=convert, required=True, max_items=1, by_url=by_url)
    most = _count(several, "maxItems")
    if first is None:
        return converted(
            "images",
            to=several.name,
            convert=each_image(encode),
            required=True,
            max_items=most,
            min_items=_count(several, "minItems") or 0,
            by_url=by_url,
        )
    return converted(
        "images",
        to=(first.name, several.name),
        convert=_first_and_rest(encode),
        required=True,
        max_items=most and most + 1,
        by_url=by_url,
    )


def _count(field: ProviderField, keyword: str) -> int | None:
    found = limit(field.schema, keyword)
    return None if found is None else int(found)


def _first_and_rest(encode: Encode) -> Callable[[Sequence[InputFile]], tuple[Any, Any]]:
    return lambda images: (encode(images[0]), [encode(image) for image in images[1:]] or None)


def video_rows(inputs: Inputs, encode: Encode, role: str) -> tuple[Param, ...]:
    """The rows for `input_reference`: images, and a video in this role."""
    images = (_frames_row(inputs, encode),) if inputs.exist else refused("input_reference")
    video = inputs.video
    if video is None:
        return images
    convert, by_url = _way(encode, video)
    return (*images, input_video(role, to=video.name, convert=convert, required=video.is_required, by_url=by_url))


def _frames_row(inputs: Inputs, encode: Encode) -> Param:
    """The first frame and the last one, or references."""
    first, last, several = inputs.first, inputs.last, inputs.several
    encode, by_url = _way(encode, first, last, several)
    if first is None:
        assert several is not None, "there is a row only where images are taken"
        return converted(
            "input_reference",
            to=several.name,
            convert=each_image(encode),
            required=several.is_required,
            max_items=_count(several, "maxItems"),
            min_items=_count(several, "minItems") or 0,
            frames=0,
            by_url=by_url,
        )
    if last is None:
        convert = first_image(encode)
        return converted(
            "input_reference", to=first.name, convert=convert, required=first.is_required, max_items=1, by_url=by_url
        )
    return converted(
        "input_reference",
        to=(first.name, last.name),
        convert=first_and_last(encode),
        required=first.is_required,
        max_items=2,
        min_items=2 if last.is_required else 0,
        by_url=by_url,
    )
