"""Values of fields are checked against the rows of a model's table."""

from typing import Any

import pytest

from penstock.errors import InvalidRequest
from penstock.providers.spec import Model, Operation, Param, Result, converted, ignored, passthrough, refused
from penstock.schema import Request
from penstock.upstream import checks, translate


def model(*params: Param, **changes: Any) -> Model:
    task = changes.pop("task", "image")
    settings = {"send": "POST /make", "read": lambda reply: Result(), **changes}
    return Model(id="lab/brush", upstream="brush-1", op=Operation(task=task, params=params, **settings), prices=())


def request(task: str = "image", extras: dict[str, Any] | None = None, **values: Any) -> Request:
    return Request(task=task, model="lab/brush", values=values, extras=extras or {})


def body(one: Model, wanted: Request) -> dict[str, Any]:
    values = translate.table_values(wanted, wanted.n, {})
    return translate.provider_body(one, values, wanted.extras)


def refusal(one: Model, wanted: Request) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        checks.check(one, wanted)
    return caught.value


SEED = passthrough("seed", low=0, high=9)


@pytest.mark.parametrize("seed", [-1, 10, "5", "abc", [1], True, 1e300])
def test_limits_of_provider_fields_are_checked(seed: Any) -> None:
    is_number = type(seed) in (int, float)
    expected = "`seed` of lab/brush must be " + ("from 0 to 9." if is_number else "a number.")
    assert refusal(model(SEED), request(extras={"seed": seed})).message == expected


def test_provider_fields_are_translated() -> None:
    one = model(converted("seed", to="noise.seed", convert=lambda seed: seed + 1), model_field=None)
    wanted = request("upscale", {"seed": 4})
    checks.check(one, wanted)
    assert body(one, wanted) == {"noise": {"seed": 5}}
    assert refusal(one, request(extras={"seed": "abc"})).message == "Invalid value for `seed` of lab/brush."


def test_ignored_and_refused_fields() -> None:
    assert body(model(*ignored("style"), model_field=None), request("upscale", {"style": "x"})) == {}
    assert refusal(model(*refused("style")), request("edit", {"style": "x"})).param == "style"
