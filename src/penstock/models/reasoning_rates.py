"""How fast models write that think before they answer, as their providers' own usage showed in this process."""

from typing import NamedTuple

_MODELS_MAX = 1000
_USUAL_TOKENS_PER_SECOND = 50.0

ModelName = tuple[str, str]  # the slug of a provider, and its name of the model


class HiddenTokens(NamedTuple):
    """How many tokens a model has probably written, shown or not, and whether its speed was measured."""

    number: int
    is_measured: bool


class ReasoningRates:
    """Remembers of each model that reported usage lately whether it thinks, and how fast; of very many, the newest."""

    def __init__(self) -> None:
        self._rates: dict[ModelName, float] = {}  # output tokens per second; 0: no reasoning was reported

    def note(self, model: ModelName, *, output_tokens: int, reasoning_tokens: int, seconds: float) -> None:
        """Note what a provider reported at the end of a call for which it was waited so long."""
        if reasoning_tokens and seconds <= 0:
            return
        before = self._rates.pop(model, 0.0)
        self._rates[model] = output_tokens / seconds if reasoning_tokens else before
        if len(self._rates) > _MODELS_MAX:
            del self._rates[next(iter(self._rates))]

    def reasons(self, model: ModelName) -> bool:
        """Whether the model reported reasoning tokens."""
        return self._rates.get(model, 0.0) > 0

    def is_known(self, model: ModelName) -> bool:
        """Whether the model reported any usage, by which it is known whether it thinks."""
        return model in self._rates

    def tokens(self, model: ModelName, seconds: float) -> HiddenTokens:
        """How many tokens the model has probably written in so many seconds."""
        rate = self._rates.get(model)
        return HiddenTokens(int(seconds * (rate or _USUAL_TOKENS_PER_SECOND)), bool(rate))
