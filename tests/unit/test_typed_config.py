"""What an operator wrote, converted into structs, and the messages about what is not allowed."""

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta, inspect

from penstock.typed_config import Dollars, Misconfigured, Text, allowed, convert, with_hint


class Item(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: Text
    count: Annotated[int, Meta(ge=1)] = 1


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    folder: Path = Path("here")
    items: tuple[Item, ...] = ()
    either: Item | list[Item] | None = None
    usd: Dollars = "1"

    def __post_init__(self) -> None:
        if self.usd == "13":
            raise ValueError("has an unlucky price")


def message(written: Any, where: str = "table") -> str:
    with pytest.raises(Misconfigured) as caught:
        convert(written, Table, where=where)
    assert caught.value.__suppress_context__
    return str(caught.value)


def test_a_table_becomes_a_struct() -> None:
    written = {"folder": "/srv", "items": [{"id": "a", "count": 2}], "usd": "1e-6"}
    assert convert(written, Table) == Table(Path("/srv"), (Item("a", 2),), None, "1e-6")


def test_text_becomes_numbers_only_when_asked() -> None:
    assert convert({"id": "a", "count": "2"}, Item, strict=False) == Item("a", 2)
    with pytest.raises(Misconfigured, match=r"^count must be a whole number, at least 1$"):
        convert({"id": "a", "count": "2"}, Item)


def test_messages_name_the_place_and_what_is_allowed() -> None:
    item = "must be text that is not empty"
    assert message(5) == "table must be a table"
    assert message({"folder": 5}) == "table.folder must be a path"
    assert message({"items": [{"id": ""}]}) == f'table.items[""].id {item}'
    assert message({"items": [{"id": "a"}, {"id": 5}]}) == f"table.items[1].id {item}"
    assert message({"items": [{"id": "a", "count": 0}]}) == 'table.items["a"].count must be a whole number, at least 1'
    assert message({"items": [{"count": 1}]}) == f"table.items[0] needs id, which {item}"
    assert message({"items": [{"id": "a", "cuont": 1}]}) == (
        'table.items["a"] has an unknown key: cuont (did you mean count?)'
    )
    assert message({"either": {"id": 5}}) == f"table.either.id {item}"
    assert message({"either": [{"id": 5}]}) == f"table.either[0].id {item}"
    assert message({"nothing": 1}) == "table has an unknown key: nothing"
    assert message({"usd": "13"}) == "table has an unlucky price"
    assert message({"usd": "13"}, where="") == "has an unlucky price"


def test_no_message_repeats_the_value() -> None:
    canary = "sk-canary"
    values: list[Any] = [canary, {"folder": [canary]}, {"items": canary}, {"items": [canary]}, {"usd": canary}]
    assert [written for written in values if "canary" in message(written)] == []


def test_what_is_allowed_in_words() -> None:
    words = {
        bool: "true or false",
        str: "text",
        int: "a whole number",
        Annotated[int, Meta(gt=0)]: "a whole number above 0",
        Annotated[int, Meta(ge=0, le=9)]: "a whole number from 0 to 9",
        Annotated[float, Meta(gt=0, le=1e9)]: "a number above 0, at most 1000000000",
        Literal["a", "b"]: "one of a, b",
        Literal["a"]: "a",
        list[str]: "a list of text",
        tuple[float, ...]: "a list of numbers",
        list[Item]: "a list of tables",
        Item | list[Item]: "a table or a list of tables",
        dict[str, Any]: "a table",
        dict[str, bool]: "a table; each value must be true or false",
    }
    assert {kind: allowed(inspect.type_info(kind)) for kind in words} == words


def test_a_name_that_is_much_like_a_known_one_gets_a_hint() -> None:
    assert with_hint("prot", ["port", "host"]) == "prot (did you mean port?)"
    assert with_hint("xyz", ["port", "host"]) == "xyz"
