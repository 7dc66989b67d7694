"""A route needs a key unless it says otherwise."""

import pytest

from penstock.api.route import Access, Route
from penstock.gateway import Gateway
from penstock.schema import Call, Response


async def nothing(gateway: Gateway, call: Call) -> Response:
    return Response()


def test_a_route_needs_a_key_by_default() -> None:
    row = Route("GET", "/x", nothing, "X")
    assert (row.access, row.needs_key, row.takes, row.generation) == ("key", True, "nothing", False)


@pytest.mark.parametrize(
    ("access", "needs"), [("key", True), ("admin", True), ("operator", True), ("open", False), ("signed", False)]
)
def test_open_and_signed_routes_need_no_key(access: Access, needs: bool) -> None:
    assert Route("GET", "/x", nothing, "X", access=access).needs_key is needs
