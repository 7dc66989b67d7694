"""Price rows of one list share their source."""

from penstock.providers.prices import Price, Source, price_list


def test_prices_of_one_source() -> None:
    usd = price_list(Source("a page"))
    assert usd("0.1", resolution="720p") == Price(
        unit="second", usd="0.1", when={"sent.resolution": "720p"}, source=Source("a page")
    )
    assert usd("0.1", "image", each_usd="0.2").each_usd == "0.2"
