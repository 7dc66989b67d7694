"""Price rows: those of one list share their source, and a day decides which of them apply."""

from dataclasses import replace

from penstock.providers.prices import Price, Source, announced_prices, price_list, prices_in_force


def test_prices_of_one_source() -> None:
    usd = price_list(Source("a page"))
    assert usd("0.1", resolution="720p") == Price(
        unit="second", usd="0.1", when={"sent.resolution": "720p"}, source=Source("a page")
    )
    assert usd("0.1", "image", each_usd="0.2").each_usd == "0.2"


def test_a_day_decides_which_prices_apply() -> None:
    usual = Price(unit="second", usd="1")
    large = replace(usual, usd="2", when={"resolution": "1080p"})
    december = replace(usual, usd="3", from_date="2026-12-01")
    january = replace(usual, usd="4", from_date="2027-01-01")
    prices = (january, december, large, usual)
    assert prices_in_force((large, usual), "2026-11-30") == (large, usual)
    assert prices_in_force(prices, "2026-11-30") == (large, usual)
    assert prices_in_force(prices, "2026-12-01") == (large, december)
    assert prices_in_force(prices, "2027-01-01") == (large, january)
    new_condition = replace(december, when={"resolution": "4k"})
    assert prices_in_force((usual, new_condition), "2026-12-01") == (new_condition, usual)
    assert announced_prices(prices, "2026-11-30") == (december, january)
    assert announced_prices(prices, "2026-12-01") == (january,)
