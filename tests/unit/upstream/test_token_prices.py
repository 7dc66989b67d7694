"""Prices per token as integers: which row applies, what the lines cost, and that a new price is a new object."""

from dataclasses import replace

from penstock.models.catalog import Catalog
from penstock.providers.openai_compatible import CHAT
from penstock.providers.spec import Model, Price, Provider
from penstock.settings import Settings
from penstock.upstream.candidate import Candidate
from penstock.upstream.token_prices import TokenPrice, TokenPrices
from tests.manual_clock import ManualClock

PRICE = Price(unit="token", usd="0.000002", input_usd="0.000001", other_usd={"cached": "0.0000001"}, each_usd="0.5")


def model(*prices: Price) -> Model:
    return Model(id="lab/chat", upstream="chat", op=CHAT, prices=prices)


def test_the_lines_add_up_to_the_sum() -> None:
    lines, total = TokenPrice.of(PRICE).lines(1000, 10, 400)
    assert [(line.metric, line.quantity, line.amount) for line in lines] == [
        ("input_token", 600, 600_000),
        ("output_token", 10, 20_000),
        ("cached_token", 400, 40_000),
        ("output", 1, 500_000_000),
    ]
    assert total == 500_660_000
    assert TokenPrice.of(PRICE).nanos(1000, 10) == 501_020_000


def test_the_row_for_long_inputs() -> None:
    prices = TokenPrices.of(model(replace(PRICE, above=1000), replace(PRICE, usd="1")))
    assert [prices.row(count).above for count in (1, 1000, 1001)] == [0, 0, 1000]  # type: ignore[union-attr]
    assert TokenPrices.of(model()).row(5) is None


def test_prices_are_computed_once_and_anew_when_they_change() -> None:
    """Of a day on which another price applies, or of changed settings, the catalog makes other candidates."""
    cheaper = replace(PRICE, usd="0.000001", from_date="2027-01-01")
    provider = Provider(slug="lab", name="Lab", docs="", base_url="https://lab.test", models=(model(PRICE, cheaper),))
    clock = ManualClock(1_798_761_599_000)  # the last second of 2026
    catalog = Catalog([provider], Settings(), {}, clock)

    def found() -> Candidate:
        return catalog.find("lab/chat", ("chat",)).candidates[0]

    before = found()
    assert before.token_prices is found().token_prices
    assert [row.usd[1] for row in before.token_prices.rows] == ["0.000002"]
    clock.advance(1)
    assert [row.usd[1] for row in found().token_prices.rows] == ["0.000001"]
    changed = replace(before, model=replace(before.model, prices=()))
    assert changed.token_prices.rows == ()
