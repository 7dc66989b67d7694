"""What is stored about a model is read by older and newer releases."""

import msgspec

from penstock.providers.live import LiveModel


def test_a_stored_description_survives_the_way_there_and_back() -> None:
    live = LiveModel(name="a", input={"type": "object"}, prices=({"unit": "image"},), version="7")
    assert msgspec.json.decode(msgspec.json.encode(live), type=LiveModel) == live
    assert msgspec.json.decode(b'{"name": "a", "of_a_later_release": 1}', type=LiveModel) == LiveModel(name="a")
