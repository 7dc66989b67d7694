"""Models are described by what their tables and prices say."""

from penstock.providers.openai_compatible import OPERATIONS
from penstock.providers.spec import Model, Price
from penstock.upstream.description import modes, pricing


def test_modes_and_prices() -> None:
    model = Model(id="a", upstream="a", op=OPERATIONS["edit"], prices=())
    assert modes(model) == ("image-edit",)
    assert pricing(Price(unit="image", usd="0.1", above=5)) == {"unit": "image", "usd": "0.1", "above": 5}
    assert pricing(Price(unit="image", usd="0.1", when={"quality": "hd"}))["when"] == {"quality": "hd"}
