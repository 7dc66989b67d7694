"""Models are described by what their tables and prices say."""

from dataclasses import replace

from penstock.models.description import modes, pricing, shown_prices, shutdown_date
from penstock.providers.openai_compatible import OPERATIONS
from penstock.providers.spec import Model, Price, Source


def test_modes_and_prices() -> None:
    model = Model(id="a", upstream="a", op=OPERATIONS["edit"], prices=())
    assert modes(model) == ("image-edit",)
    price = Price(unit="image", usd="0.1", above=5, source=Source("a page", "2026-11-15", is_second_hand=True))
    assert pricing(price) == {
        "unit": "image",
        "usd": "0.1",
        "above": 5,
        "source": "a page",
        "as_of": "2026-11-15",
        "second_hand": True,
    }
    assert pricing(Price(unit="image", usd="0.1", when={"quality": "hd"}))["when"] == {"quality": "hd"}


def test_a_model_ends_when_its_last_provider_stops_serving_it() -> None:
    model = Model(id="a", upstream="a", op=OPERATIONS["edit"], prices=())
    early = replace(model, shutdown_date="2026-11-17")
    late = replace(model, shutdown_date="2027-01-14")
    assert shutdown_date([late, early]) == "2027-01-14"
    assert shutdown_date([early, model]) is None


def test_prices_that_differ_only_in_what_is_held_are_shown_once() -> None:
    usual = Price(unit="token", usd="0.00003", max_tokens=7030)
    low = replace(usual, when={"sent.quality": "low"}, max_tokens=200)
    assert shown_prices((low, usual)) == (usual,)
    dearer = replace(low, usd="0.00004")
    assert shown_prices((dearer, usual)) == (dearer, usual)
    assert shown_prices(()) == ()
