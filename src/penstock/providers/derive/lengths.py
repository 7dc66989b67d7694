"""Recognise the fields of a video model for its length, in seconds or in frames, and make the row for them."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from penstock.providers.convert import seconds_between
from penstock.providers.derive.draft import Draft, ProviderField, choices, is_any, is_number, limit
from penstock.providers.spec import Param, converted

_LENGTHS = ("duration", "seconds", "duration_seconds", "video_duration", "video_length", "length_seconds")
_SECONDS_LIKELY_MAX = 60  # a default above it counts frames
_FRAMES = ("num_frames", "frames", "video_frames", "frame_count", "max_frames", "video_length", "length")
_RATES = ("fps", "frames_per_second", "frame_rate", "framerate")
_MORE_FRAMES = re.compile(r".*(fps|frames?_per_second|frame_?rate|interpolated_frames)")


def take_seconds(draft: Draft, *, as_long_as_input: bool = False) -> Param | None:
    """The row for `seconds`: a field for seconds, or one for the number of frames.

    An edited video is as long as its input. That is what a model does with a field for seconds that is not sent; but a
    number of frames is sent, because by default it is the same for all videos.
    """
    field = draft.find(_LENGTHS, is_any)
    if field is not None and (row := _seconds_row(field)):
        draft.take((field.name,), is_any)
        draft.take(_FRAMES, is_number)  # it would change the length once more
        return None if as_long_as_input and not field.is_required else row
    return _frames_row(draft)


def _seconds_row(field: ProviderField) -> Param | None:
    known = {seconds: value for value in choices(field.schema) if (seconds := seconds_in(value)) is not None}
    default = seconds_in(field.default)
    if default is not None and default > _SECONDS_LIKELY_MAX:
        return None
    if known:
        return converted("seconds", to=field.name, convert=shortest(known), high=max(known), default=default)
    if not is_number(field.schema):
        return None
    low, high = limit(field.schema, "minimum"), limit(field.schema, "maximum")
    whole = "integer" in str(field.schema.get("type")) or not isinstance(field.default, float)
    convert = seconds_between(low or 1, high or 3600, convert=round if whole else float)
    return converted("seconds", to=field.name, convert=convert, high=high, default=default)


def seconds_in(value: Any) -> float | None:
    """`5`, `"5"`, `"8s"` as a number of seconds; None for anything else, such as `auto`."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?(?:s|sec|secs|seconds?)?", str(value).strip().lower())
    return None if found is None or isinstance(value, bool) else float(found[1])


def without_frame_counts(rows: Sequence[Param]) -> tuple[Param, ...]:
    """The rows without those by which a caller says how many frames there are, for a model with a price by the second:
    nobody knows how many seconds they are, and the model has a number of its own.
    """
    return tuple(row for row in rows if row.name not in _FRAMES or row.required)


def without_frame_rates(rows: Sequence[Param]) -> tuple[Param, ...]:
    """The rows without those by which a caller says how many frames a second has, for a model that bills frames."""
    return tuple(row for row in rows if not _MORE_FRAMES.fullmatch(row.name) or row.required)


def shortest(known: Mapping[float, Any]) -> Callable[[float], Any]:
    """The provider's word for the shortest length that is long enough; for the longest if none is."""
    ordered = sorted(known)
    return lambda seconds: known[next((each for each in ordered if each >= seconds - 1e-9), ordered[-1])]


def _frames_row(draft: Draft) -> Param | None:
    """A length in frames, where the frames per second are known. Both fields are taken: each changes the length, and
    with it the price.
    """
    frames = draft.find(_FRAMES, is_number)
    rate = draft.find(_RATES, is_number)
    if frames is None or rate is None or not isinstance(rate.default, int | float) or rate.default <= 0:
        return None
    if (limit(frames.schema, "maximum") or rate.default) < rate.default:  # frames to add between those of the input
        return None
    draft.take(_FRAMES, is_number)
    draft.take(_RATES, is_number)
    low, high = limit(frames.schema, "minimum") or 1, limit(frames.schema, "maximum")
    per_second = float(rate.default)
    step = next((step for step in (8, 4) if isinstance(frames.default, int) and frames.default % step == 1), 0)
    most = high and ((high - 1) // step * step + 1 if step else high)

    def count(seconds: float) -> tuple[int]:
        wanted = max(seconds * per_second, low)
        stepped = int(wanted // step * step + 1) if step else round(wanted)
        return (int(min(stepped, most)) if most else stepped,)

    default = round(frames.default / per_second, 1) if isinstance(frames.default, int | float) else None
    return converted(
        "seconds",
        to=frames.name,
        convert=count,
        high=high and round(high / per_second, 1),
        min_seconds=low / per_second,
        default=default,
    )
