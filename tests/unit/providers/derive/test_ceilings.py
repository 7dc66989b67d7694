"""A price for all resolutions is held for the largest that a call may mean."""

from penstock.providers.derive.ceilings import with_ceilings
from penstock.providers.spec import Price, converted, passthrough

PRICE = Price(unit="second", usd="0.1")
SCHEMA = {"properties": {"resolution": {"enum": ["480p", "720p", "1080p", "4k"]}}}
FRAME = converted("frame", to=("aspect_ratio", "resolution"), convert=str)


def test_ceilings_grow_with_the_area_and_double_with_sound() -> None:
    assert with_ceilings({}, (), (PRICE,)) == (PRICE,)
    assert with_ceilings(SCHEMA, (FRAME,), ()) == ()
    found = with_ceilings(SCHEMA, (FRAME,), (PRICE,))
    assert [(price.when, price.ceiling) for price in found] == [
        ({"sent.resolution": "480p"}, "1"),
        ({"sent.resolution": "720p"}, "3"),
        ({"sent.resolution": "1080p"}, "6"),
        ({"sent.resolution": "4k"}, "10"),
        ({}, "10"),
    ]
    sound = with_ceilings({}, (passthrough("generate_audio"),), (PRICE,))
    assert [price.ceiling for price in sound] == ["2"]
