"""Which providers are down, slow or dearer."""

from decimal import Decimal

import pytest

from penstock.drills.scenario import read_scenario
from penstock.errors import InvalidRequest

KNOWN = ("fal", "kling")


def test_a_scenario_says_what_is_different_about_which_provider() -> None:
    scenario = read_scenario(["fal"], ["kling=4x"], ["kling = 1.25x"], KNOWN)
    assert scenario.down == {"fal"}
    assert (scenario.slow, scenario.dearer) == ({"kling": Decimal(4)}, {"kling": Decimal("1.25")})
    assert scenario.changes("fal")
    assert scenario.changes("kling")
    assert not scenario.changes("bfl")
    assert not read_scenario([], [], [], KNOWN).changes("fal")


@pytest.mark.parametrize("item", ["fal", "fal=4", "fal=x", "fal=0x", "fal=1001x", "fal=-1x", "=4x", "fal=4x;kling=4x"])
def test_a_wrong_factor_is_refused_with_an_example(item: str) -> None:
    for param, slow, dearer in (("slow", [item], []), ("dearer", [], [item])):
        with pytest.raises(InvalidRequest, match="such as `fal=4x`") as caught:
            read_scenario([], slow, dearer, KNOWN)
        assert caught.value.param == param


def test_an_unknown_provider_is_refused_by_its_name() -> None:
    for param, down, slow in (("down", ["fall"], []), ("slow", [], ["fall=4x"])):
        with pytest.raises(InvalidRequest, match="`fall`") as caught:
            read_scenario(down, slow, [], KNOWN)
        assert caught.value.param == param
    with pytest.raises(InvalidRequest, match="20"):
        read_scenario(["fal"] * 21, [], [], KNOWN)
