"""Lists that are read a page at a time: cursors in, addresses of the neighbours out."""

from collections.abc import Mapping
from typing import Any

from penstock.api import query
from penstock.api.route import Query
from penstock.errors import InvalidRequest, NotFound
from penstock.schema import Call
from penstock.values import is_id

LIMIT = Query(name="limit", type="integer", default=20, low=1, high=100, about="How many to return.")


def cursors(what: str) -> tuple[Query, Query]:
    return (
        Query(name="starting_after", about=f"Id of a {what}; returns what is older."),
        Query(name="ending_before", about=f"Id of a {what}; returns what is newer. Not with `starting_after`."),
    )


def check_cursors(asked: Mapping[str, Any], prefix: str, what: str) -> None:
    if asked["starting_after"] and asked["ending_before"]:
        raise InvalidRequest("`starting_after` and `ending_before` cannot be combined.", param="ending_before")
    cursor = asked["starting_after"] or asked["ending_before"]
    if cursor and not is_id(cursor, prefix):
        raise NotFound(f"No such {what}: {cursor[:64]}.")


def listed(call: Call, rows: tuple[Query, ...], page: Any) -> dict[str, Any]:
    return {
        "object": "list",
        "data": page.data,
        "next_page_url": query.page_url(call.endpoint, rows, call.query, "starting_after", page.next_cursor),
        "previous_page_url": query.page_url(call.endpoint, rows, call.query, "ending_before", page.previous_cursor),
    }


def path_id(call: Call, name: str, prefix: str, what: str) -> str:
    """An id out of the path. What cannot be one is as unknown as any other, and reaches no database."""
    value = call.path[name]
    if not is_id(value, prefix):
        raise NotFound(f"No such {what}: {value[:64]}.")
    return value
