"""Cursors in, addresses of the neighbouring pages out."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from penstock.api.paging import LIMIT, check_cursors, cursors, listed, path_id
from penstock.errors import InvalidRequest, NotFound
from penstock.schema import Call, Caller
from penstock.values import new_id

ID = new_id("key", 1)
ROWS = (LIMIT, *cursors("key"))


@dataclass
class Page:
    data: list[Any] = field(default_factory=list)
    next_cursor: str | None = None
    previous_cursor: str | None = None


def call(query: dict[str, str] | None = None, **path: str) -> Call:
    caller = Caller("org_1", "key_1")
    return Call(id="req_1", caller=caller, endpoint="/v1/keys", at_ms=0, started=0.0, query=query or {}, path=path)


def asked(after: str | None = None, before: str | None = None) -> dict[str, Any]:
    return {"starting_after": after, "ending_before": before}


def test_one_cursor_at_most() -> None:
    check_cursors(asked(), "key", "key")
    check_cursors(asked(after=ID), "key", "key")
    check_cursors(asked(before=ID), "key", "key")
    with pytest.raises(InvalidRequest, match="cannot be combined"):
        check_cursors(asked(ID, ID), "key", "key")


@pytest.mark.parametrize("cursor", ["x", "key_x", "req_" + "0" * 32, "é"])
def test_what_cannot_be_an_id_is_as_unknown_as_any_other(cursor: str) -> None:
    with pytest.raises(NotFound, match="No such key"):
        check_cursors(asked(after=cursor), "key", "key")
    with pytest.raises(NotFound, match="No such key"):
        path_id(call(key_id=cursor), "key_id", "key", "key")


def test_an_id_in_the_path_is_taken() -> None:
    assert path_id(call(key_id=ID), "key_id", "key", "key") == ID


def test_a_page_knows_its_neighbours() -> None:
    assert listed(call({"limit": "2"}), ROWS, Page([1], "key_9", "key_3")) == {
        "object": "list",
        "data": [1],
        "next_page_url": "/v1/keys?limit=2&starting_after=key_9",
        "previous_page_url": "/v1/keys?limit=2&ending_before=key_3",
    }
    alone = listed(call(), ROWS, Page())
    assert (alone["next_page_url"], alone["previous_page_url"]) == (None, None)
