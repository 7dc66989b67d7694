"""What speech may cost at most and what it did cost; the first is never lower."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.providers.spec import Model, Price
from penstock.speech.plan import make_plan
from penstock.speech.pricing import depends_on_text_only, longest_seconds, make_bill, max_cost, quote
from tests.unit.speech.tables import model, request

CHARACTER = Price(unit="character", usd="0.00001")
BYTE = Price(unit="byte", usd="0.00001")
TOKEN = Price(unit="token", input_usd="0.0000006", usd="0.000012")
SECOND = Price(unit="second", usd="0.01")
COUNTED = Price(unit="character", usd="0.00001", is_counted_by_provider=True, ceiling="2")


@pytest.mark.parametrize(
    ("price", "text", "nanos"),
    [
        (CHARACTER, "Grüße", 50_000),
        (BYTE, "Grüße", 70_000),
        (CHARACTER, "👋🏽", 20_000),
        (BYTE, "日本", 60_000),
        (Price(unit="call", usd="0.02"), "x", 20_000_000),
        (Price(unit="character", usd="0.00001", each_usd="0.001"), "x", 1_010_000),
    ],
)
def test_texts_are_counted_as_the_price_says(price: Price, text: str, nanos: int) -> None:
    plan = make_plan(model(price), request(text=text))
    bill = make_bill(plan, 1, {}, 1.0, is_whole=True)
    assert bill.cost == nanos == max_cost(plan, 1)
    assert sum(line.amount for line in bill.lines) == nanos
    assert bill.tokens == {}


def test_reported_tokens_are_charged() -> None:
    plan = make_plan(model(TOKEN, tokens_per_second=25), request())
    bill = make_bill(plan, 1, {"input": 10, "output": 500}, 2.0, is_whole=True)
    assert bill.cost == 10 * 600 + 500 * 12_000
    assert bill.tokens == {"input": 10, "output": 500}


def test_tokens_that_are_not_reported_are_those_of_the_sound() -> None:
    plan = make_plan(model(TOKEN, tokens_per_second=25), request())
    assert make_bill(plan, 1, {}, 2.0, is_whole=True).tokens == {"input": 3, "output": 50}


def test_of_half_a_sound_half_is_charged_where_sound_is_priced() -> None:
    plan = make_plan(model(SECOND), request())
    assert make_bill(plan, 1, {}, 0.5, is_whole=False).cost == 5_000_000


def test_only_parts_that_were_sent_are_charged() -> None:
    plan = make_plan(model(CHARACTER, max_characters=12), request(text="one two. three four."))
    assert len(plan.parts) == 2
    assert make_bill(plan, 1, {}, 1.0, is_whole=False).cost == len(plan.parts[0]) * 10_000
    assert make_bill(plan, 0, {}, 0.0, is_whole=False).cost == 0


def test_what_the_provider_counted_is_charged_within_the_hold() -> None:
    plan = make_plan(model(COUNTED), request(text="日本"))
    assert make_bill(plan, 1, {"billed": 4}, None, is_whole=True).cost == 40_000 == max_cost(plan, 1)


@given(
    st.text(min_size=1, max_size=300).filter(lambda text: bool(text.strip())),
    st.sampled_from([CHARACTER, BYTE, TOKEN, SECOND]),
    st.sampled_from([0.25, 1, 4]),
)
def test_a_cost_is_never_above_the_hold(text: str, price: Price, speed: float) -> None:
    plan = make_plan(model(price, tokens_per_second=25), request(text=text, speed=speed))
    seconds = float(longest_seconds(text)) * 0.99
    assert make_bill(plan, len(plan.parts), {}, seconds, is_whole=True).cost <= max_cost(plan, speed)


def test_a_script_of_syllables_takes_longer_to_speak() -> None:
    assert longest_seconds("日本語" * 10) == 10
    assert longest_seconds("abcde" * 20) == Decimal(10)


@pytest.mark.parametrize(("price", "is_known"), [(CHARACTER, True), (BYTE, True), (TOKEN, False), (COUNTED, False)])
def test_the_cost_is_known_before_the_call_where_it_depends_on_the_text(price: Price, is_known: bool) -> None:
    assert depends_on_text_only(model(price)) is is_known


def test_a_model_without_a_price_costs_nothing() -> None:
    free = Model(id="x", upstream="x", op=model().op, prices=())
    plan = make_plan(free, request())
    assert quote(plan, 1).total == make_bill(plan, 1, {}, 1.0, is_whole=True).cost == 0
