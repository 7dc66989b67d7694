"""Make the parameter tables of a model from the JSON Schema of its input."""

import re
from collections.abc import Callable, Mapping

from penstock.fields import TABLES
from penstock.providers.convert import on_off
from penstock.providers.derive import lengths, shapes
from penstock.providers.derive.draft import (
    Draft,
    ProviderField,
    choices,
    is_any,
    is_number,
    is_switch,
    is_text,
    limit,
    row_for,
)
from penstock.providers.derive.factors import take_factor
from penstock.providers.derive.inputs import Encode, Inputs, edit_rows, take_inputs, video_rows
from penstock.providers.derive.sounds import sound_rows
from penstock.providers.live import LiveModel, Underivable
from penstock.providers.spec import Param, Task, complete_table, converted, emulated, fixed, ignored, refused
from penstock.values import EDIT_VIDEO, EXTEND_VIDEO

_PROMPTS = ("prompt", "text_prompt", "prompt_text", "instruction", "edit_prompt", "caption", "text")
_NEGATIVE = ("negative_prompt", "negative_prompt_text", "n_prompt", "neg_prompt")
_COUNTS = ("num_images", "num_outputs", "number_of_images", "n", "num_samples", "batch_size", "image_number", "samples")
_SOUND = tuple("generate_audio generate_audio_switch enable_audio with_audio audio sound enable_sound".split())
_ENHANCING = tuple(
    """enhance_prompt prompt_enhancement prompt_upsampling expand_prompt prompt_expansion enable_prompt_expansion
    prompt_optimizer enable_prompt_optimizer prompt_extend magic_prompt_option""".split()
)
_FORMATS = ("output_format", "format", "image_format", "output_type")
_UPSCALER = re.compile(r"upscal|super.?res|esrgan|\bsr\b|enlarge|clarity", re.IGNORECASE)
_EXTENDER = re.compile(r"extend|extension|continu", re.IGNORECASE)
_N_MAX = 10
# Further numbers of outputs, which would be paid for and thrown away; without case and underscores.
_OUTPUT_WORD = "(image|output|video|clip|sample|result|variation|generation|song|audio|track)"
_MULTIPLYING = re.compile(
    rf"(max|num|numberof|n|nb){_OUTPUT_WORD}s?(perprompt)?|{_OUTPUT_WORD}s?(count|number|num)"
    r"|samples|variations|niter|.*batch(size|count)?"
)
_QUALITIES = TABLES["image"]["quality"].one_of


def tables(name: str, live: LiveModel, makes: str, encode: Encode) -> dict[Task, tuple[Param, ...]]:
    """The complete table of each task that a model can do, if it makes an `image`, a `video` or a `sound`.

    `encode` turns an input file into what the provider's fields for files take. Raises Underivable if the model needs
    something that the interface has no way to say.
    """
    draft = Draft(live.input)
    if makes == "sound":
        made = sound_rows(draft)
        return {"sound": complete_table("sound", *made, *_rows_for_rest("sound", draft.take_rest()))}
    inputs = take_inputs(draft, makes)
    prompt = draft.take(_PROMPTS, is_text)
    needs_input = inputs.need_video if makes == "video" else inputs.are_required
    is_upscaler = needs_input and _is_upscaler(name, live, prompt)
    role = EXTEND_VIDEO if _EXTENDER.search(name) else EDIT_VIDEO
    rows = [_text_row("prompt", prompt)] if prompt else []
    if makes == "video":
        seconds = lengths.take_seconds(draft, as_long_as_input=inputs.need_video and role == EDIT_VIDEO)
        rows += [seconds] if seconds else ignored("seconds")
    for recognise in _RECOGNISERS[makes]:
        rows += [row for row in (recognise(draft),) if row]
    if is_upscaler:
        rows += take_factor(draft, makes, has_frame=any(row.name == "frame" for row in rows))
    if not any(row.name in ("frame", "scale_factor") and shapes.has_resolution(row) for row in rows):
        rows += refused("resolution")  # it would be ignored without a word
    rest = draft.take_rest()
    files: dict[Task, tuple[Param, ...]]
    if makes == "video":
        files = {"video": video_rows(inputs, encode, role)}
    else:
        files = _image_tasks(inputs, encode, is_upscaler)
    return {task: complete_table(task, *found, *rows, *_rows_for_rest(task, rest)) for task, found in files.items()}


def _image_tasks(inputs: Inputs, encode: Encode, is_upscaler: bool) -> dict[Task, tuple[Param, ...]]:
    """The tasks of a model that makes images, and the rows for the input images of each."""
    if is_upscaler:
        return {"upscale": edit_rows(inputs, encode)}
    tasks: dict[Task, tuple[Param, ...]] = {} if inputs.are_required else {"image": ()}
    return {**tasks, "edit": edit_rows(inputs, encode)} if inputs.exist else tasks


def _is_upscaler(name: str, live: LiveModel, prompt: ProviderField | None) -> bool:
    is_named_so = _UPSCALER.search(f"{name} {live.category} {live.name}") is not None
    return is_named_so and (prompt is None or not prompt.is_required)


# ------------------------------------------------------------------------------------------------- recognised fields


def _text_row(name: str, field: ProviderField) -> Param:
    longest = limit(field.schema, "maxLength")
    return row_for(name, field, required=field.is_required, max_length=None if longest is None else int(longest))


def _negative(draft: Draft) -> Param | None:
    field = draft.take(_NEGATIVE, is_text)
    return _text_row("negative_prompt", field) if field else None


def _count(draft: Draft) -> Param | None:
    """The row for `n`. Without a limit in the schema, each call makes one output."""
    field = draft.take(_COUNTS, is_number)
    if field is None:
        return None
    listed = [value for value in choices(field.schema) if isinstance(value, int)]
    most = max(listed) if listed else limit(field.schema, "maximum")
    if most and most > 1:
        return emulated("n", to=field.name, high=min(int(most), _N_MAX))
    return emulated("n", to=field.name, high=1) if field.is_required else emulated("n")


def _seed(draft: Draft) -> Param | None:
    field = draft.take(("seed",), is_number)
    return row_for("seed", field, schema=field.schema, required=field.is_required) if field else None


def _sound(draft: Draft) -> Param | None:
    field = draft.take(_SOUND, is_switch)
    if field is None:
        return None
    return row_for("generate_audio", field, one_of=(True, False), default=field.default, required=field.is_required)


def _enhancing(draft: Draft) -> Param | None:
    field = draft.take(_ENHANCING, is_switch)
    if field is None:
        return None
    return converted("prompt_enhancement", field.name, on_off(True, False), required=field.is_required)


def _quality(draft: Draft) -> Param | None:
    """Qualities that the interface and the model both have; others are not sent."""
    field = draft.take(("quality",), is_any)
    if field is None:
        return None
    shared = {quality: quality for quality in _QUALITIES if quality in choices(field.schema)}
    if "high" in shared:
        shared.setdefault("hd", "high")
    return converted("quality", field.name, shared.get, required=field.is_required) if shared else None


def _format(wanted: str) -> Callable[[Draft], Param | None]:
    """A format that loses nothing, from which the gateway makes the one that the caller wants."""

    def take(draft: Draft) -> Param | None:
        field = draft.take(_FORMATS, lambda schema: wanted in choices(schema))
        return fixed(field.name, wanted) if field and field.default != wanted else None

    return take


_RECOGNISERS: Mapping[str, tuple[Callable[[Draft], Param | None], ...]] = {
    "image": (
        lambda draft: shapes.take_frame(draft, "image"),
        _count,
        _negative,
        _seed,
        _quality,
        _enhancing,
        _format("png"),
    ),
    "video": (
        lambda draft: shapes.take_frame(draft, "video"),
        _negative,
        _seed,
        _sound,
        _enhancing,
        _format("mp4"),
    ),
}


# ------------------------------------------------------------------------------------------------------- other fields


def _rows_for_rest(task: Task, rest: list[ProviderField]) -> list[Param]:
    """Rows for fields that only this model has. One that is named like a field of the interface cannot be reached."""
    rows = []
    for field in rest:
        if _MULTIPLYING.fullmatch(field.name.lower().replace("_", "")):
            continue
        if field.name not in TABLES[task]:
            rows.append(row_for(field.name, field, required=field.is_required, schema=field.schema))
        elif field.is_required and field.default is None:
            raise Underivable(f"it needs `{field.name}`, which means something else in this interface")
    return rows
