"""Values of fields are checked against the rows of a model's table."""

from dataclasses import replace
from typing import Any

import pytest

from penstock import package_extras
from penstock.providers.spec import converted, ignored, passthrough, refused
from penstock.upstream import checks
from tests.unit.upstream.small_model import body, refusal, request, small_model

SEED = passthrough("seed", low=0, high=9)


@pytest.mark.parametrize("seed", [-1, 10, "5", "abc", [1], True, 1e300])
def test_limits_of_provider_fields_are_checked(seed: Any) -> None:
    is_number = type(seed) in (int, float)
    expected = "`seed` of lab/brush must be " + ("from 0 to 9." if is_number else "a number.")
    assert refusal(small_model(SEED), request(extras={"seed": seed})).message == expected


def test_a_model_whose_library_is_missing_is_refused_before_the_call_is_accepted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    brush = small_model()
    monkeypatch.setitem(package_extras.LIBRARIES, "brushes", ("no_such_library",))
    brush = replace(brush, op=replace(brush.op, libraries=("json", "no_such_library")))
    expected = (
        "lab/brush needs the library `no_such_library`, which the gateway lacks; to install it: "
        "pip install '.[brushes]' in a clone of Penstock."
    )
    assert refusal(brush, request()).message == expected
    checks.check(replace(brush, op=replace(brush.op, libraries=("json",))), request())


def test_provider_fields_are_translated() -> None:
    brush = small_model(converted("seed", to="noise.seed", convert=lambda seed: seed + 1), model_field=None)
    wanted = request("upscale", {"seed": 4})
    checks.check(brush, wanted)
    assert body(brush, wanted) == {"noise": {"seed": 5}}
    assert refusal(brush, request(extras={"seed": "abc"})).message == "Invalid value for `seed` of lab/brush."


def test_ignored_and_refused_fields() -> None:
    assert body(small_model(*ignored("style"), model_field=None), request("upscale", {"style": "x"})) == {}
    assert refusal(small_model(*refused("style")), request("edit", {"style": "x"})).param == "style"
