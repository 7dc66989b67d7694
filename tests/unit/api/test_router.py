"""Routes by method and path, and refusals for everything else."""

import msgspec
import pytest

from penstock.api.route import Route
from penstock.api.router import Router
from penstock.api.routes import ROUTES
from penstock.errors import MethodNotAllowed, NotFound
from penstock.gateway import Gateway
from penstock.schema import Call, Caller, Response
from penstock.values import OrgId

CALL = Call(id="req_1", caller=Caller(OrgId("org_1"), "key_1"), endpoint="/", at_ms=0, started=0.0)


async def nothing(gateway: Gateway, call: Call) -> Response:
    return Response()


A = Route("GET", "/a", nothing, "A")
A_POST = Route("POST", "/a", nothing, "A")
ONE = Route("GET", "/a/{id}", nothing, "One")
PART = Route("DELETE", "/a/{id}/part", nothing, "Part")
REST = Route("GET", "/rest/{name:path}", nothing, "Rest")
OPEN = Route("GET", "/open", nothing, "Open", access="open")
ROUTER = Router([A, A_POST, ONE, PART, REST, OPEN])


def test_routes_are_found_by_method_and_path() -> None:
    assert ROUTER.find("GET", b"/a") == (A, {})
    assert ROUTER.find("POST", b"/a") == (A_POST, {})
    assert ROUTER.find("GET", b"/a/7") == (ONE, {"id": "7"})
    assert ROUTER.find("DELETE", b"/a/7/part") == (PART, {"id": "7"})
    assert ROUTER.find("GET", b"/rest/x/y/z") == (REST, {"name": "x/y/z"})
    assert ROUTER.find("HEAD", b"/a") == (A, {})


def test_path_values_are_decoded_once_and_one_by_one() -> None:
    assert ROUTER.find("GET", b"/a/x%2Fy") == (ONE, {"id": "x/y"})
    assert ROUTER.find("GET", b"/a/x%252Fy") == (ONE, {"id": "x%2Fy"})
    assert ROUTER.find("GET", b"/rest/x%2Fy/%C3%A9") == (REST, {"name": "x/y/é"})


@pytest.mark.parametrize(
    "path",
    [
        b"", b"*", b"/", b"//a", b"/a/", b"/./a", b"/x/../a", b"/%61", b"/A", b"/a;x", b"/a//part", b"/a%2F7", b"/a/7/",
        b"/a/7/part/", b"/a/7/part/more", b"/a/%00", b"/a/%ff", b"/rest", b"/a\n", b"/a/7/part\n",
    ],
)  # fmt: skip
async def test_paths_are_not_normalised(path: bytes) -> None:
    route, values = ROUTER.find("GET", path)
    assert route.access == "open"
    assert set(values) <= {"path"}
    with pytest.raises(NotFound):
        await route.endpoint(None, CALL)  # type: ignore[arg-type]


async def test_the_documentation_is_found_with_a_slash_at_its_end() -> None:
    route, values = Router(ROUTES).find("GET", b"/docs/")
    response = await route.endpoint(None, msgspec.structs.replace(CALL, path=values))  # type: ignore[arg-type]
    assert (response.status, response.headers["location"]) == (308, "/docs")


async def test_a_wrong_method_is_refused_after_the_key_is_checked() -> None:
    route, _ = ROUTER.find("PUT", b"/a")
    assert route.access == "key"
    with pytest.raises(MethodNotAllowed) as problem:
        await route.endpoint(None, CALL)  # type: ignore[arg-type]
    assert problem.value.headers == {"allow": "GET, POST, HEAD, OPTIONS"}
    assert ROUTER.find("PUT", b"/open")[0].access == "open"
    assert ROUTER.find("*", b"/a")[0].access == "key"


async def test_options_lists_the_methods() -> None:
    route, _ = ROUTER.find("OPTIONS", b"/a/7")
    response = await route.endpoint(None, CALL)  # type: ignore[arg-type]
    assert (response.status, response.headers) == (204, {"allow": "GET, HEAD, OPTIONS"})


def test_no_path_shadows_another() -> None:
    router = Router(ROUTES)
    for row in ROUTES:
        path = row.path.replace(":path", "").replace("{", "").replace("}", "")
        assert router.find(row.method, path.encode())[0] is row
