"""Texts that are spoken one after the other, each in a voice and a manner of its own: `input` as an array."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from penstock.errors import InvalidRequest, quoted
from penstock.field_types import check_field
from penstock.fields import SPEECH

TURNS_MAX = 100
_MAX_VOICE_LENGTH = 256
_NAMES = ("text", "voice", "instructions")


class Turn(msgspec.Struct, frozen=True):
    """A text, and who speaks it how; what is missing is as in the rest of the call."""

    text: str
    voice: str | None = None
    instructions: str | None = None


def read_turns(written: str | Sequence[Any]) -> tuple[Turn, ...]:
    """The turns of an input. Raises InvalidRequest for the first fault, with its place."""
    if isinstance(written, str):
        return (Turn(written),)
    if not 0 < len(written) <= TURNS_MAX:
        raise InvalidRequest(f"`input` must be a text or an array of 1 to {TURNS_MAX} turns.", param="input")
    turns = tuple(_turn(each, f"input[{number}]") for number, each in enumerate(written))
    most = SPEECH["input"].max_length or 0
    if sum(len(turn.text) for turn in turns) > most:
        raise InvalidRequest(f"The turns of `input` may have at most {most} characters together.", param="input")
    return turns


def plain_turns(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """The same texts, all in the voice and the manner of the call."""
    return tuple(Turn(turn.text) for turn in turns)


def _turn(written: Any, place: str) -> Turn:
    if not isinstance(written, Mapping):
        raise InvalidRequest(f"`{place}` must be an object with {quoted(_NAMES)}.", param=place)
    given = {name: value for name, value in written.items() if value is not None}
    for name in given:
        if name not in _NAMES:
            raise InvalidRequest(f"`{place}` may have {quoted(_NAMES)}, not `{name}`.", param=f"{place}.{name}")
    text = given.get("text")
    if not isinstance(text, str) or not text.strip():
        raise InvalidRequest(f"`{place}.text` must be a text that is not empty.", param=f"{place}.text")
    instructions = given.get("instructions")
    if instructions is not None:
        try:
            check_field(SPEECH["instructions"], instructions)
        except InvalidRequest as problem:
            message = problem.message.replace("`instructions`", f"`{place}.instructions`")
            raise InvalidRequest(message, param=f"{place}.instructions") from None
    return Turn(text, read_voice(given.get("voice"), f"{place}.voice"), instructions)


def read_voice(written: Any, place: str) -> str | None:
    """The name of a voice, which may be written as an object with its id. Raises InvalidRequest."""
    name = written.get("id") if isinstance(written, dict) else written
    if written is not None and not (isinstance(name, str) and 0 < len(name) <= _MAX_VOICE_LENGTH):
        raise InvalidRequest(
            f"`{place}` must be a name of at most {_MAX_VOICE_LENGTH} characters, or an object with it as `id`.",
            param=place,
        )
    return name
