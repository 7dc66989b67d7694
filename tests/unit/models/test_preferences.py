"""The field `provider` of a call: what it may say, and the refusals of everything else."""

from decimal import Decimal
from typing import Any

import pytest

from penstock.errors import InvalidRequest
from penstock.models.preferences import Preferences, read_preferences

# By the part that is to blame: what is refused, and a word of the message.
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("order", {"order": "fal"}, "list of names"),
    ("only", {"only": []}, "must name a provider"),
    ("only", {"only": [1]}, "list of names"),
    ("ignore", {"ignore": ["x"] * 51}, "at most 50"),
    ("allow_fallbacks", {"allow_fallbacks": "no"}, "boolean"),
    ("sort", {"sort": "speed"}, "`price`, `latency`, `throughput`"),
    ("sort", {"sort": {"by": "price"}}, "`price`, `latency`, `throughput`"),
    ("max_price", {"max_price": "1"}, "dollars"),
    ("max_price", {"max_price": True}, "dollars"),
    ("max_price", {"max_price": -1}, "dollars"),
    ("max_price", {"max_price": float("nan")}, "dollars"),
    ("max_price.image", {"max_price": {"image": [1]}}, "dollars"),
    ("max_price.prompt", {"max_price": {"prompt": 1}}, "`request`, `image`"),
    ("data_collection", {"data_collection": "deny"}, "`order`, `only`, `ignore`"),
]


def test_what_cannot_be_meant_is_refused_by_name() -> None:
    failures = []
    for part, value, word in REFUSED:
        try:
            read_preferences(value, "image")
            failures.append(f"{value} was accepted")
        except InvalidRequest as problem:
            if problem.param != f"provider.{part}" or word not in problem.message:
                failures.append(f"{value}: {problem.param}, {problem.message}")
    assert failures == []


def test_everything_at_once_and_nothing() -> None:
    found = read_preferences(
        {
            "order": ["a", "b", "a"],
            "only": ["a", "b"],
            "ignore": ["c"],
            "allow_fallbacks": False,
            "sort": "price",
            "max_price": {"prompt": 0.1, "completion": 2},
        },
        "chat",
    )
    assert found == Preferences(
        order=("a", "b"),
        only=("a", "b"),
        ignore=("c",),
        allow_fallbacks=False,
        sort="price",
        max_price={"prompt": Decimal("0.1"), "completion": Decimal(2)},
    )
    assert read_preferences({}, "chat") == Preferences() == read_preferences({"sort": None, "only": None}, "video")


@pytest.mark.parametrize(("task", "name"), [("image", "image"), ("video", "second"), ("chat", "prompt")])
def test_a_number_limits_the_whole_call(task: str, name: str) -> None:
    assert read_preferences({"max_price": 0.5}, task).max_price == {"request": Decimal("0.5")}
    assert read_preferences({"max_price": {name: 1}}, task).max_price == {name: Decimal(1)}
