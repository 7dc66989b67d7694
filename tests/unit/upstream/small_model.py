"""A small model, requests for it, and what becomes of them."""

from typing import Any

import pytest

from penstock.errors import InvalidRequest
from penstock.providers.spec import Model, Operation, Param, Result
from penstock.schema import Request
from penstock.upstream import checks, translate


def small_model(*params: Param, **changes: Any) -> Model:
    task = changes.pop("task", "image")
    settings = {"send": "POST /make", "read": lambda reply: Result(), **changes}
    return Model(id="lab/brush", upstream="brush-1", op=Operation(task=task, params=params, **settings), prices=())


def request(task: str = "image", extras: dict[str, Any] | None = None, **values: Any) -> Request:
    return Request(task=task, model="lab/brush", values=values, extras=extras or {})


def body(brush: Model, wanted: Request) -> dict[str, Any]:
    """The fields that the provider gets."""
    values = translate.table_values(wanted, wanted.n, {})
    return translate.provider_body(brush, values, wanted.extras)


def refusal(brush: Model, wanted: Request) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        checks.check(brush, wanted)
    return caught.value
