"""The speeds of models that think before they answer."""

from penstock.models.reasoning_rates import HiddenTokens, ReasoningRates

MODEL = ("lab", "thinker")


def test_a_model_that_reported_reasoning_has_a_speed() -> None:
    rates = ReasoningRates()
    assert not rates.reasons(MODEL)
    assert rates.tokens(MODEL, 2.0) == HiddenTokens(100, is_measured=False)
    rates.note(MODEL, output_tokens=300, reasoning_tokens=200, seconds=2.0)
    assert rates.reasons(MODEL)
    assert rates.tokens(MODEL, 4.0) == HiddenTokens(600, is_measured=True)


def test_usage_without_time_says_nothing_and_without_reasoning_that_the_model_does_not_think() -> None:
    rates = ReasoningRates()
    rates.note(MODEL, output_tokens=300, reasoning_tokens=200, seconds=0.0)
    assert not rates.is_known(MODEL)
    rates.note(MODEL, output_tokens=300, reasoning_tokens=0, seconds=2.0)
    assert rates.is_known(MODEL)
    assert not rates.reasons(MODEL)
    assert not rates.tokens(MODEL, 2.0).is_measured


def test_a_model_that_answers_once_without_thinking_still_thinks() -> None:
    rates = ReasoningRates()
    rates.note(MODEL, output_tokens=300, reasoning_tokens=200, seconds=2.0)
    rates.note(MODEL, output_tokens=300, reasoning_tokens=0, seconds=2.0)
    assert rates.reasons(MODEL)
    assert rates.tokens(MODEL, 4.0) == HiddenTokens(600, is_measured=True)


def test_the_newest_models_are_remembered() -> None:
    rates = ReasoningRates()
    for number in range(1001):
        rates.note(("lab", str(number)), output_tokens=1, reasoning_tokens=1, seconds=1.0)
    assert not rates.reasons(("lab", "0"))
    assert rates.reasons(("lab", "1"))
    assert rates.reasons(("lab", "1000"))
