"""Which voice of a model a name means."""

from difflib import get_close_matches

from penstock.errors import InvalidRequest, quoted
from penstock.providers.spec import Model
from penstock.providers.speech import OPENAI_VOICES, Speech

_LISTED_MAX = 30  # in an error


def model_voice(model: Model, name: str | None) -> str | None:
    """The provider's name of a voice; without a name, that of the model's first voice, or None if it has no list.

    Raises InvalidRequest for a voice that a model with a closed list does not have.
    """
    speech = speech_of(model)
    if name is None:
        return speech.openai_voices.get(OPENAI_VOICES[0]) or next(iter(speech.voices), None)
    if name in speech.voices:
        return name
    if name in speech.openai_voices:
        return speech.openai_voices[name]
    folded = {known.lower(): known for known in (*speech.voices, *speech.openai_voices)}
    known = folded.get(name.lower())
    if known is not None:
        return speech.openai_voices.get(known, known)
    if not speech.voices:
        return name
    names = list(dict.fromkeys((*speech.openai_voices, *speech.voices)))
    near = get_close_matches(name.lower()[:64], list(folded), n=1, cutoff=0.6)
    meant = f" Did you mean `{folded[near[0]]}`?" if near else ""
    more = f" and {len(names) - _LISTED_MAX} more" if len(names) > _LISTED_MAX else ""
    raise InvalidRequest(
        f"`voice` of {model.id} must be one of {quoted(names[:_LISTED_MAX])}{more}.{meant}", param="voice"
    )


def speech_of(model: Model) -> Speech:
    """How a model speaks; only models of the task `speech` do."""
    assert model.op.speech is not None, "only models that speak are asked to"
    return model.op.speech
