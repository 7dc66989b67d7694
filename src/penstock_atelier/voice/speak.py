"""The task of a child process: speak a text, clause by clause."""

from collections.abc import Callable
from typing import Any

from penstock_atelier.voice.prosody import clause_frames
from penstock_atelier.voice.synthesis import VOICES, samples
from penstock_atelier.voice.words import clauses

_EMIT_BYTES = 4800  # a tenth of a second


class NotEnglish(Exception):
    """The text has nothing that can be spoken here."""

    kind = "refused"


def speak(emit: Callable[[bytes], None], *, text: str, voice: str, speed: float) -> dict[str, Any]:
    """Emit the samples of a text, 24,000 a second. Raises NotEnglish for a text without a word in Latin letters."""
    chosen = VOICES[voice]
    made = bytearray()
    count = 0
    for words, mark in clauses(text):
        for piece in samples(clause_frames(words, mark, chosen.rate * speed), chosen):
            made += piece
            if len(made) >= _EMIT_BYTES:
                emit(bytes(made))
                count += len(made)
                made.clear()
    if made:
        emit(bytes(made))
        count += len(made)
    if not count:
        raise NotEnglish("The built-in voice speaks English: the text has no word in Latin letters.")
    return {"bytes": count}
