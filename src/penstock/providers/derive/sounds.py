"""Recognise the fields of a model that makes speech, music or noises, and make the rows for them."""

import re
from collections.abc import Callable
from typing import Any

from penstock.json_schema import Schema
from penstock.providers.convert import seconds_between
from penstock.providers.derive.draft import (
    Draft,
    ProviderField,
    choices,
    is_any,
    is_list_of_text,
    is_number,
    is_switch,
    is_text,
    limit,
    row_for,
)
from penstock.providers.derive.lengths import seconds_in, shortest
from penstock.providers.live import Underivable
from penstock.providers.spec import Param, converted, ignored

# Where a model has a text and a prompt, the text is what is spoken.
_TEXTS = tuple("text gen_text prompt text_prompt input_text script input tags style_prompt genres".split())
_LYRICS = ("lyrics", "lyrics_prompt", "lyric", "lyrics_text")
_LENGTHS = tuple(
    """duration seconds duration_seconds seconds_total total_seconds audio_length audio_length_in_s audio_duration
    music_duration length_seconds music_length_ms duration_ms""".split()
)
# What else decides how long a sound becomes, and with that what it costs.
_LENGTH = re.compile(r"duration|seconds|(^|_)length|_ms$")
_SWITCHES = {
    "instrumental": ("instrumental", "force_instrumental", "is_instrumental", "make_instrumental"),
    "loop": ("loop", "looping"),
}
_LONGEST = 600.0  # seconds, where the model does not say
_DEPTH_MAX = 4
# Names of fields for files. A sound in one of them is a voice to imitate or a piece to go on with, which the interface
# has fields of its own for: with consent, and measured.
_FILE = re.compile(r"(^|_)(urls?|uri|paths?|files?|wav)$|audio|video|image|(voice|speaker)_(sample|embedding)")


_SPEECH = re.compile(r"text.?to.?speech|\btts\b|speech", re.IGNORECASE)
_MUSIC = re.compile(r"music|song|lyri[ac]", re.IGNORECASE)


def modes(words: str) -> dict[str, Any]:
    """The setting that says what a model makes, by its name and what it is said to do."""
    found = "text-to-music" if _MUSIC.search(words) else "text-to-speech" if _SPEECH.search(words) else ""
    return {"modes": (found,)} if found else {}


def sound_rows(draft: Draft) -> list[Param]:
    """The rows of a model that makes sounds. Raises Underivable if it needs a file."""
    _leave_out(draft, _is_file, "a file")
    text = draft.take(_TEXTS, is_text)
    lyrics = draft.take(_LYRICS, is_text)
    rows = [_text_row("prompt", text)] if text else [*ignored("prompt")]
    rows += [_text_row("lyrics", lyrics)] if lyrics else []
    rows += [_seconds(draft) or ignored("seconds")[0]]
    _leave_out(draft, lambda name, schema: _LENGTH.search(name) is not None, "a length")
    if negative := draft.take(("negative_prompt", "negative_tags"), is_text):
        rows.append(_text_row("negative_prompt", negative))
    if seed := draft.take(("seed",), is_number):
        rows.append(row_for("seed", seed, schema=seed.schema, required=seed.is_required))
    if language := draft.take(("language", "language_code"), is_text):
        rows.append(row_for("language", language, required=language.is_required))
    for name, names in _SWITCHES.items():
        if switch := draft.take(names, is_switch):
            rows.append(row_for(name, switch, required=switch.is_required))
    return rows


def _leave_out(draft: Draft, is_meant: Callable[[str, Schema], bool], what: str) -> None:
    """Take the fields out of a draft that are meant, or have one that is inside of them."""
    for field in draft.fields():
        if _has(field.name, field.schema, is_meant):
            if field.is_required and field.default is None:
                raise Underivable(f"it needs {what} in `{field.name}`")
            draft.take((field.name,), is_any)


def _has(name: str, schema: Schema, is_meant: Callable[[str, Schema], bool], depth: int = 0) -> bool:
    if is_meant(name.lower(), schema) or depth > _DEPTH_MAX:
        return True
    parts = _parts(schema)
    items = [part["items"] for part in parts if isinstance(part.get("items"), dict)]
    inner = [pair for part in (*parts, *items) for pair in (part.get("properties") or {}).items()]
    return any(_has(key, value, is_meant, depth + 1) for key, value in inner)


def _parts(schema: Schema) -> list[Schema]:
    """A schema and its alternatives."""
    return [schema, *(part for name in ("anyOf", "allOf", "oneOf") for part in schema.get(name) or ())]


def _is_file(name: str, schema: Schema) -> bool:
    """Whether a field takes a file, or several, by its name or because it takes a URL."""
    is_named_so = _FILE.search(name) is not None and (is_text(schema) or is_list_of_text(schema))
    return is_named_so or any(
        (part.get("items") or part).get("format") == "uri" for part in _parts(schema) if isinstance(part, dict)
    )


def _text_row(name: str, field: ProviderField) -> Param:
    longest = limit(field.schema, "maxLength")
    return row_for(name, field, required=field.is_required, max_length=None if longest is None else int(longest))


def _seconds(draft: Draft) -> Param | None:
    """The row for a length in seconds, or in milliseconds."""
    field = draft.take(_LENGTHS, is_any)
    if field is None:
        return None
    known = {seconds: value for value in choices(field.schema) if (seconds := seconds_in(value)) is not None}
    default = seconds_in(field.default)
    if known:
        return converted("seconds", to=field.name, convert=shortest(known), high=max(known), default=default)
    if not is_number(field.schema):
        return None
    size = 1000 if field.name.endswith("_ms") else 1
    low, high = ((limit(field.schema, name) or 0) / size for name in ("minimum", "maximum"))
    is_whole = "integer" in str(field.schema.get("type"))
    clamp = seconds_between(low or 0.5, high or _LONGEST, convert=float)

    def convert(seconds: float) -> Any:
        sent = clamp(seconds) * size
        return round(sent) if is_whole or sent.is_integer() else sent

    default = default / size if default and default >= size else None
    return converted("seconds", to=field.name, convert=convert, high=high or _LONGEST, default=default)
