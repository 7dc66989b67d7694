"""What transcripts may cost at most, and what they did cost."""

import pytest

from penstock.providers.spec import Price
from penstock.transcription.pricing import billed_seconds, make_bill, max_cost, quote
from tests.unit.transcription.tables import model

TOKENS = Price(unit="token", input_usd="0.000002", usd="0.00001")


def test_seconds_are_those_of_the_sound() -> None:
    assert max_cost(model(), [1.5, 2.25]) == 375_000
    assert make_bill(model(), [1.5, 2.25], {}, "").cost == 375_000
    assert make_bill(model(), [1.5], {}, "").cost == 150_000, "of a call that ended early, what was sent"
    assert make_bill(model(), [], {}, "").cost == 0


def test_a_short_sound_counts_as_the_least_that_is_billed() -> None:
    least = model(least_seconds=10)
    assert max_cost(least, [2.0]) == make_bill(least, [2.0], {}, "").cost == 1_000_000
    assert billed_seconds(least, [2.0, 12.0]) == 22


def test_tokens_are_those_that_the_provider_reports() -> None:
    priced = model(TOKENS, tokens_per_second=10)
    bill = make_bill(priced, [3.0], {"input": 31, "output": 4}, "four words of text")
    assert bill.tokens == {"input": 31, "output": 4}
    assert bill.cost == 31 * 2000 + 4 * 10_000
    assert bill.cost < max_cost(priced, [3.0])


def test_tokens_that_nobody_reports_are_estimated_below_what_is_held() -> None:
    priced = model(TOKENS, tokens_per_second=10)
    bill = make_bill(priced, [3.0], {}, "x" * 40)
    assert bill.tokens == {"input": 30, "output": 10}
    assert bill.cost < max_cost(priced, [3.0])
    assert max_cost(priced, [3.0], "a prompt") > max_cost(priced, [3.0])


def test_units_that_the_provider_counts_are_charged() -> None:
    counted = model(Price(unit="second", usd="0.0001", is_counted_by_provider=True))
    assert make_bill(counted, [2.0], {"billed": 3}, "").cost == 300_000


def test_a_price_for_each_call_counts_the_parts() -> None:
    assert max_cost(model(Price(unit="call", usd="0.01")), [60.0, 60.0]) == 20_000_000


@pytest.mark.parametrize("seconds", [[0.001], [14400.0], [1400.0] * 11])
def test_a_quote_adds_up(seconds: list[float]) -> None:
    found = quote(model(TOKENS, tokens_per_second=32), seconds)
    assert found.total == sum(part.total for part in found.components)
