"""Query parameters and response bodies of paged lists."""

import pytest

from penstock.api.paging import LIMIT, cursors, page_body, path_id
from penstock.errors import NotFound
from penstock.schema import Call, Caller
from penstock.store.paging import Page
from penstock.values import OrgId, new_id

ID = new_id("key", 1)
ROWS = (LIMIT, *cursors("key"))


def call(query: dict[str, str] | None = None, **path: str) -> Call:
    caller = Caller(OrgId("org_1"), "key_1")
    return Call(id="req_1", caller=caller, endpoint="/v1/keys", at_ms=0, started=0.0, query=query or {}, path=path)


@pytest.mark.parametrize("cursor", ["x", "key_x", "req_" + "0" * 32, "é"])
def test_a_text_that_cannot_be_an_id_is_not_found(cursor: str) -> None:
    with pytest.raises(NotFound, match="No such key"):
        path_id(call(key_id=cursor), "key_id", "key", "key")


def test_an_id_in_the_path_is_taken() -> None:
    assert path_id(call(key_id=ID), "key_id", "key", "key") == ID


def test_a_page_has_the_urls_of_the_pages_beside_it() -> None:
    assert page_body(call({"limit": "2"}), ROWS, Page([{"id": "key_3"}], "key_9", "key_3")) == {
        "object": "list",
        "data": [{"id": "key_3"}],
        "next_page_url": "/v1/keys?limit=2&starting_after=key_9",
        "previous_page_url": "/v1/keys?limit=2&ending_before=key_3",
    }
    alone = page_body(call(), ROWS, Page([]))
    assert (alone["next_page_url"], alone["previous_page_url"]) == (None, None)
