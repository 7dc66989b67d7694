"""Query parameters and response bodies of lists that are read page by page."""

from typing import Any

from penstock.api import query
from penstock.api.route import Query
from penstock.errors import NotFound
from penstock.schema import Call
from penstock.store.paging import DEFAULT_LIMIT, MAX_LIMIT, Page
from penstock.values import is_id

LIMIT = Query(
    name="limit", type="integer", default=DEFAULT_LIMIT, low=1, high=MAX_LIMIT, about="How many rows to return."
)


def cursors(noun: str) -> tuple[Query, Query]:
    """Return the rows of the two cursors of a list of requests, keys or recordings."""
    return (
        Query(name="starting_after", about=f"Id of a {noun}; returns what is older."),
        Query(name="ending_before", about=f"Id of a {noun}; returns what is newer. Not with `starting_after`."),
    )


def page_body(call: Call, rows: tuple[Query, ...], page: Page[dict[str, Any]]) -> dict[str, Any]:
    """Return the JSON body of a page, with the URLs of the next and the previous page."""
    return {
        "object": "list",
        "data": page.data,
        "next_page_url": query.page_url(call.endpoint, rows, call.query, "starting_after", page.next_cursor),
        "previous_page_url": query.page_url(call.endpoint, rows, call.query, "ending_before", page.previous_cursor),
    }


def path_id(call: Call, name: str, prefix: str, noun: str) -> str:
    """Return an id from the path; raise NotFound for a text that cannot be one, without a query."""
    value = call.path[name]
    if not is_id(value, prefix):
        raise NotFound(f"No such {noun}: {value[:64]}.")
    return value
