"""The comparison of our prices with litellm's table."""

from dataclasses import replace

from penstock.providers.spec import Price
from tests.providers.price_differences import lines
from tests.providers.recordings import known_providers


def test_prices_of_today_are_compared() -> None:
    provider = known_providers()["recraft"]
    model = next(model for model in provider.models if model.op.task == "image")
    prices = (Price(unit="image", usd="0.04"), Price(unit="image", usd="0.05", from_date="2026-12-01"))
    provider = replace(provider, models=(replace(model, prices=prices),))
    table = {f"recraft/{model.upstream}": {"output_cost_per_image": 0.04}}
    assert [*lines(table, [provider], "2026-11-30")] == ["1 figures and 0 dates compared"]
    [difference, _] = lines(table, [provider], "2026-12-01")
    assert difference.endswith("output_cost_per_image 0.05, litellm 0.04")
