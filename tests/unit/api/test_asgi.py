"""Calls through the ASGI application: access, what an endpoint gets, error responses and records of refusals."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import structlog

from penstock import errors
from penstock.accounts.request_filters import Filters
from penstock.api.asgi import AsgiApp
from penstock.api.endpoints.generations import DRY_RUN
from penstock.api.route import Endpoint, Query, Route
from penstock.fields import UploadedFile
from penstock.gateway import Gateway
from penstock.schema import Call, Response
from penstock.values import is_id
from tests.api.accounts import Account, first_account, opened
from tests.api.raw_http import Server, request, serving, until
from tests.manual_clock import ManualClock

CANARY = "a-prompt-that-must-not-be-logged"


class CallCollector:
    """An endpoint that records its calls and returns or raises what it is given."""

    def __init__(self, does: Endpoint | None = None) -> None:
        self.calls: list[Call] = []
        self._does = does

    async def __call__(self, gateway: Gateway, call: Call) -> Response:
        self.calls.append(call)
        return await self._does(gateway, call) if self._does else Response(json={"made": True})


def raising(problem: Exception) -> CallCollector:
    async def does(gateway: Gateway, call: Call) -> Response:
        raise problem

    return CallCollector(does)


def make(endpoint: Endpoint, **more: Any) -> Route:
    """A route that may cost money."""
    rest = {"takes": "json or form", "generation": True, "drains": True, "modality": "image", "query": DRY_RUN}
    return Route("POST", "/make", endpoint, "Make", **{**rest, **more})


@asynccontextmanager
async def running(
    folder: Path, *routes: Route, **response: Any
) -> AsyncIterator[tuple[Server, Account, Gateway, AsgiApp]]:
    async with opened(folder, **response) as gateway:
        account = await first_account(gateway)
        edge = AsgiApp(gateway, routes)
        async with serving(edge, gateway.settings) as served:
            yield served, account, gateway, edge


async def records(gateway: Gateway, account: Account) -> list[dict[str, Any]]:
    return (await gateway.requests.list_records(account.org_id, Filters())).data


# ----------------------------------------------------------------------------------------------------- what calls carry


async def test_an_endpoint_gets_every_part_of_a_call(tmp_path: Path) -> None:
    collector = CallCollector()
    query = (Query(name="x", about="X."), Query(name="y", about="Y."))
    row = Route("POST", "/of/{id}/{rest:path}", collector, "Of", takes="json", query=query)
    async with running(tmp_path, row, clock=ManualClock()) as (served, account, gateway, _):
        response = await served.call(
            "POST",
            "/of/a%2Fb/c/d?x=1&y=%20",
            key=account.plain.key,
            body=b'{"n": 1}',
            headers={"Content-Type": "application/json", "X-Service-Session-Id": "s1"},
        )
    [call] = collector.calls
    assert (response.json, response.headers.get("connection")) == ({"made": True}, None)
    assert is_id(call.id, "req")
    assert response.headers["x-request-id"] == response.headers["x-service-request-id"] == call.id
    assert (call.caller.org_id, call.caller.key_id) == (account.org_id, account.plain.id)
    assert (call.method, call.endpoint, dict(call.path)) == ("POST", row.path, {"id": "a/b", "rest": "c/d"})
    assert (dict(call.query), call.headers["x-service-session-id"]) == ({"x": "1", "y": " "}, "s1")
    assert (call.body, call.json, call.size_bytes, call.is_form) == (b'{"n": 1}', {"n": 1}, 8, False)
    assert call.at_ms == gateway.clock.now_ms()
    assert call.started > 0


async def test_a_form_reaches_the_endpoint_in_order(tmp_path: Path) -> None:
    collector = CallCollector()
    body = (
        b'--b\r\nContent-Disposition: form-data; name="prompt"\r\n\r\nfox\r\n'
        b'--b\r\nContent-Disposition: form-data; name="image"; filename="f.png"\r\n'
        b"Content-Type: image/png\r\n\r\n\x89\r\n--b--\r\n"
    )
    async with running(tmp_path, make(collector)) as (served, account, _, _):
        headers = {"content-type": "multipart/form-data; boundary=b"}
        assert (await served.call("POST", "/make", key=account.plain.key, body=body, headers=headers)).status == 200
    [call] = collector.calls
    assert call.form == (("prompt", "fox"), ("image", UploadedFile(b"\x89", "f.png", "image/png")))
    assert (call.is_form, call.json, call.size_bytes) == (True, None, len(body))


@pytest.mark.parametrize(
    ("host", "settings", "expected"),
    [
        ("media.example:8080", {}, "http://media.example:8080"),
        ("[::1]:8080", {}, "http://[::1]:8080"),
        ("media.example", {"public_url": "https://p.example/"}, "https://p.example"),
        ("evil/../x", {"port": 81}, "http://127.0.0.1:81"),
        ("a b", {"port": 81}, "http://127.0.0.1:81"),
        ("user@evil.example", {"port": 81}, "http://127.0.0.1:81"),
    ],
)
async def test_links_begin_with_the_url_that_the_caller_used(
    tmp_path: Path, host: str, settings: dict[str, Any], expected: str
) -> None:
    collector = CallCollector()
    async with running(tmp_path, make(collector), **settings) as (served, account, _, _):
        await served.call("POST", "/make", key=account.plain.key, body={}, headers={"host": host})
    assert collector.calls[0].base_url == expected


async def test_a_large_body_is_read_completely(tmp_path: Path) -> None:
    collector = CallCollector()
    async with running(tmp_path, make(collector)) as (served, account, _, _):
        response = await served.call("POST", "/make", key=account.plain.key, body={"image": "A" * 5_000_000})
    assert response.status == 200
    assert len(collector.calls[0].json["image"]) == 5_000_000


# --------------------------------------------------------------------------------------------------------- who may call


HOSTILE_KEYS = [
    "' OR 1=1--",
    "pk_" + "a" * 82,
    "%",
    "x" * 20_000,
    "Bearer",
    "é",
    "pk_\t",
]


async def test_every_bad_key_gets_the_same_response(tmp_path: Path) -> None:
    collector = CallCollector()
    async with running(tmp_path, make(collector)) as (served, account, gateway, _):
        await gateway.keys.revoke_key(account.org_id, account.plain.id)
        responses = [
            await served.call("POST", "/make", body={}),
            *[await served.call("POST", "/make", key=key, body={}) for key in HOSTILE_KEYS],
            await served.call("POST", "/make", key=account.plain.key, body={}),
            await served.call("POST", "/make", key=account.admin.key[:-1] + "x", body={}),
            await served.call("POST", "/make", body={}, headers={"authorization": f"Basic {account.admin.key}"}),
            await served.call("POST", "/make", body={}, headers={"x-api-key": account.admin.key}),
        ]
        async with await served.connect() as connection:
            twice = request("POST", "/make", key=account.admin.key, body={})
            await connection.send(twice.replace(b"\r\n\r\n", b"\r\nauthorization: Bearer x\r\n\r\n", 1))
            responses.append(await connection.read_response())
        assert await records(gateway, account) == []
    assert not collector.calls
    for response in responses:
        assert (response.status, response.code) == (401, "AUTHENTICATION_FAILED")
        assert response.headers["www-authenticate"] == "Bearer"
        assert response.headers["x-should-retry"] == "false"
    assert len({response.body for response in responses}) == 1


async def test_administration_needs_the_admin_scope(tmp_path: Path) -> None:
    collector = CallCollector()
    async with running(tmp_path, Route("GET", "/rule", collector, "Rule", access="admin")) as (served, account, _, _):
        response = await served.call("GET", "/rule", key=account.plain.key)
        assert (response.status, response.code) == (403, "PERMISSION_DENIED")
        assert not collector.calls
        assert (await served.call("GET", "/rule", key=account.admin.key)).status == 200


async def test_without_a_key_the_body_is_not_read(tmp_path: Path) -> None:
    async with running(tmp_path, make(CallCollector())) as (served, _, _, _), await served.connect() as connection:
        async with asyncio.timeout(60):
            await connection.send(
                b"POST /make HTTP/1.1\r\nhost: test\r\nexpect: 100-continue\r\ncontent-length: 1000000\r\n\r\n"
            )
            response = await connection.read_response()  # and no 100 before it
            assert response.status == 401
            assert response.headers["connection"] == "close"


async def test_expect_100_continue_is_answered(tmp_path: Path) -> None:
    async with (
        running(tmp_path, make(CallCollector())) as (served, account, _, _),
        await served.connect() as connection,
    ):
        async with asyncio.timeout(60):
            head, body = request("POST", "/make", key=account.plain.key, body={}).split(b"\r\n\r\n")
            await connection.send(head + b"\r\nexpect: 100-continue\r\n\r\n")
            assert await connection.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
            await connection.send(body)
            assert (await connection.read_response()).status == 200


async def test_only_the_route_decides_who_may_call(tmp_path: Path) -> None:
    """No Host header and no other spelling of a path gives access without a key."""
    collector = CallCollector()
    routes = (
        Route("GET", "/v1/keys", collector, "Keys"),
        Route("GET", "/healthz", CallCollector(), "Health", access="open"),
    )
    async with running(tmp_path, *routes) as (served, _, _, _):
        for host in ("x/healthz?", "x/healthz#", "healthz", "127.0.0.1/healthz", "x@healthz", "test:80/healthz"):
            assert (await served.call("GET", "/v1/keys", headers={"host": host})).status == 401
        for more in ({"x-forwarded-host": "x"}, {"x-original-url": "/healthz"}, {"x-forwarded-prefix": "/healthz"}):
            assert (await served.call("GET", "/v1/keys", headers=more)).status == 401
        for path in ("http://test/v1/keys", "http://healthz/v1/keys", "/v1/keys?/healthz"):
            assert (await served.call("GET", path)).status == 401
        for path in ("//v1/keys", "/./v1/keys", "/%2e/v1/keys", "/healthz/../v1/keys", "/v1/keys/", "/v1/keys;x",
                     "/V1/KEYS", "/v1%2Fkeys", "/v1/keys/.", "*"):  # fmt: skip
            assert (await served.call("GET", path)).status == 404
        for method in ("HEAD", "OPTIONS", "PUT", "POST", "DELETE", "PATCH", "TRACE"):
            assert (await served.call(method, "/v1/keys")).status == 401
    assert not collector.calls


# ------------------------------------------------------------------------------------------------------ what goes wrong


async def test_unknown_paths_and_wrong_methods_have_the_error_envelope(tmp_path: Path) -> None:
    async with running(tmp_path, make(CallCollector())) as (served, account, _, _):
        response = await served.call("GET", "/nowhere")
        assert (response.status, response.code) == (404, "NOT_FOUND")
        response = await served.call("PUT", "/make", key=account.plain.key)
        assert (response.status, response.code, response.headers["allow"]) == (
            405,
            "METHOD_NOT_ALLOWED",
            "POST, OPTIONS",
        )
        assert (await served.call("HEAD", "/nowhere")).body == b""


async def test_a_wrong_method_is_a_405_whatever_the_query(tmp_path: Path) -> None:
    route = Route("GET", "/v1/things", CallCollector(), "Things")
    async with running(tmp_path, route) as (served, account, _, _):
        statuses = {
            method: (await served.call(method, "/v1/things?limit=5", key=account.plain.key)).status
            for method in ("GET", "TRACE", "PUT", "OPTIONS")
        }
    assert statuses == {"GET": 400, "TRACE": 405, "PUT": 405, "OPTIONS": 204}


async def test_an_internal_error_is_a_500_without_details(tmp_path: Path) -> None:
    broken = raising(RuntimeError(CANARY))

    async def unencodable(gateway: Gateway, call: Call) -> Response:
        return Response(json={"x": object()})

    secret = Query(name="secret", about="Not to be logged.")
    routes = (make(broken, query=(secret,)), Route("GET", "/other", unencodable, "Other"))
    async with running(tmp_path, *routes) as (served, account, gateway, _):
        with structlog.testing.capture_logs() as logs:
            response = await served.call(
                "POST", f"/make?secret={CANARY}", key=account.plain.key, body={"prompt": CANARY}
            )
            other = await served.call("GET", "/other", key=account.plain.key)
        assert await records(gateway, account) == []
    assert (response.status, response.code, response.headers["x-should-retry"]) == (500, "INTERNAL_ERROR", "false")
    assert (other.status, other.code) == (500, "INTERNAL_ERROR")
    assert [line["event"] for line in logs] == ["call failed", "call failed"]
    assert (logs[0]["request_id"], logs[0]["route"]) == (response.headers["x-request-id"], "/make")
    assert logs[0]["trail"][0] == "RuntimeError"
    assert CANARY not in json.dumps(logs) + response.body.decode()
    assert account.plain.key not in json.dumps(logs)


async def test_a_refused_generation_is_recorded(tmp_path: Path) -> None:
    problem = errors.InvalidRequest("`n` must be from 1 to 10.", param="n")
    async with running(tmp_path, make(raising(problem))) as (served, account, gateway, _):
        response = await served.call(
            "POST",
            "/make",
            key=account.plain.key,
            body={"model": "m", "n": 11},
            headers={"traceparent": f"00-{'a' * 32}-{'b' * 16}-01", "x-service-session-id": "s"},
        )
        [record] = await records(gateway, account)
    assert (response.status, response.code, response.headers["x-should-retry"]) == (400, "INVALID_REQUEST", "false")
    assert response.json["error"]["param"] == "n"
    assert record["id"] == response.headers["x-request-id"]
    shown = {name: record[name] for name in ("status", "model", "modality", "endpoint", "error_code", "error_message")}
    assert shown == {
        "status": "rejected",
        "model": "m",
        "modality": "image",
        "endpoint": "/make",
        "error_code": "INVALID_REQUEST",
        "error_message": "`n` must be from 1 to 10.",
    }
    assert (record["cost"], record["key_id"]) == (0, account.plain.id)
    assert (record["session_id"], record["trace_id"], record["request_size_bytes"]) == ("s", "a" * 32, 23)


async def test_a_generation_with_an_unreadable_body_is_recorded(tmp_path: Path) -> None:
    collector = CallCollector()
    form = b'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nm\r\n--b--\r\n'
    async with running(tmp_path, make(collector), json_bytes=100) as (served, account, gateway, _):
        key = account.plain.key
        codes = [
            (await served.call("POST", "/make", key=key, body=b"{", headers={"content-type": "application/json"})).code,
            (await served.call("POST", "/make", key=key, body={"a": "x" * 100})).code,
            (await served.call("POST", "/make", key=key, body=b"a", headers={"content-type": "text/plain"})).code,
            (await served.call("POST", "/make?dryRun=maybe", key=key, body={})).code,
            (
                await served.call("POST", "/make", key=key, body=form, headers={"content-type": "multipart/form-data"})
            ).code,
        ]
        found = await records(gateway, account)
    assert codes == [
        "INVALID_REQUEST",
        "PAYLOAD_TOO_LARGE",
        "UNSUPPORTED_MEDIA_TYPE",
        "INVALID_REQUEST",
        "INVALID_REQUEST",
    ]
    assert [record["error_code"] for record in reversed(found)] == codes
    assert not collector.calls


async def test_a_dry_run_leaves_no_record(tmp_path: Path) -> None:
    row = make(raising(errors.ModelNotFound("No.")))
    async with running(tmp_path, row) as (served, account, gateway, _):
        for word in ("true", "True"):
            response = await served.call("POST", f"/make?dryRun={word}", key=account.plain.key, body={"model": "m"})
            assert response.code == "MODEL_NOT_FOUND"
        assert await records(gateway, account) == []
        await served.call("POST", "/make?dryRun=false", key=account.plain.key, body={"model": "m"})
        assert len(await records(gateway, account)) == 1


async def test_other_problems_are_not_recorded_as_refusals(tmp_path: Path) -> None:
    known = errors.RateLimited("The provider is busy.")
    known.recorded = True
    for problem in (errors.UpstreamError("x"), errors.StorageUnavailable("x"), known):
        async with running(tmp_path / type(problem).__name__, make(raising(problem))) as (served, account, gateway, _):
            response = await served.call("POST", "/make", key=account.plain.key, body={"model": "m"})
            assert (response.code, response.headers["x-should-retry"]) == (problem.code, "false")
            assert await records(gateway, account) == []


async def test_a_refusal_that_cannot_be_recorded_still_gets_its_response(tmp_path: Path) -> None:
    async def refuse(gateway: Gateway, call: Call) -> Response:
        await gateway.store.close()
        raise errors.InvalidRequest("Wrong.")

    async with running(tmp_path, make(CallCollector(refuse))) as (served, account, _, _):
        with structlog.testing.capture_logs() as logs:
            response = await served.call("POST", "/make", key=account.plain.key, body={"prompt": CANARY})
    assert response.code == "INVALID_REQUEST"
    assert [line["event"] for line in logs] == ["refusal not recorded"]
    assert CANARY not in json.dumps(logs)


# ------------------------------------------------------------------------------------------------------- sizes and time


async def test_a_body_over_the_limit_gets_its_response_before_the_connection_closes(tmp_path: Path) -> None:
    """Like most clients, this one reads the response only after it has sent everything."""
    async with running(tmp_path, make(CallCollector()), json_bytes=1000) as (served, account, _, _):
        for framing in (b"content-length: 3000000\r\n\r\n", b"transfer-encoding: chunked\r\n\r\n"):
            async with await served.connect() as connection, asyncio.timeout(60):
                head = request("POST", "/make", key=account.plain.key, headers={"content-type": "application/json"})
                await connection.send(head.removesuffix(b"\r\n") + framing)
                piece = b" " * 30_000
                for _ in range(100):
                    await connection.send(piece if b"length" in framing else b"%x\r\n%s\r\n" % (len(piece), piece))
                if b"chunked" in framing:
                    await connection.send(b"0\r\n\r\n")
                response = await connection.read_response()
                assert (response.status, response.code) == (413, "PAYLOAD_TOO_LARGE")
                assert response.headers["connection"] == "close"
                assert await connection.is_closed()


async def test_a_body_that_stops_arriving_is_a_408(tmp_path: Path) -> None:
    async with (
        running(tmp_path, make(CallCollector()), body_seconds=0.2) as (served, account, gateway, _),
        asyncio.timeout(60),
    ):
        async with await served.connect() as connection:
            whole = request("POST", "/make", key=account.plain.key, body={"model": "m"})
            await connection.send(whole[:-3])
            response = await connection.read_response()
        assert (response.status, response.code, response.headers["x-should-retry"]) == (408, "REQUEST_TIMEOUT", "true")
        [record] = await records(gateway, account)
        assert record["error_code"] == "REQUEST_TIMEOUT"


async def test_a_disconnect_in_the_middle_of_a_body_ends_the_call(tmp_path: Path) -> None:
    collector = CallCollector()
    async with running(tmp_path, make(collector)) as (served, account, gateway, _):
        async with await served.connect() as connection:
            await connection.send(request("POST", "/make", key=account.plain.key, body={"model": "m"})[:-3])
            await until(lambda: served.state.tasks)
        await until(lambda: not served.state.tasks)
        assert not collector.calls
        assert await records(gateway, account) == []


# --------------------------------------------------------------------------------------------------- leaving and ending


async def test_a_call_is_finished_although_the_caller_disconnected(tmp_path: Path) -> None:
    reached, leave, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def slow(gateway: Gateway, call: Call) -> Response:
        reached.set()
        await leave.wait()
        await asyncio.sleep(0)
        done.set()
        return Response(json={})

    async with running(tmp_path, make(CallCollector(slow))) as (served, account, _, _), asyncio.timeout(60):
        async with await served.connect() as connection:
            await connection.send(request("POST", "/make", key=account.plain.key, body={}))
            await reached.wait()
        await until(lambda: not served.state.connections)
        leave.set()
        await done.wait()
        await until(lambda: not served.state.tasks)


async def test_a_stream_ends_when_the_caller_disconnects(tmp_path: Path) -> None:
    ended = asyncio.Event()

    async def words() -> AsyncIterator[bytes]:
        try:
            yield b"data: 1\n\n"
            await asyncio.sleep(3600)
        finally:
            ended.set()

    async def stream(gateway: Gateway, call: Call) -> Response:
        return Response(chunks=words(), media_type="text/event-stream")

    async with running(tmp_path, make(CallCollector(stream))) as (served, account, _, _), asyncio.timeout(60):
        async with await served.connect() as connection:
            await connection.send(request("POST", "/make", key=account.plain.key, body={}))
            await connection.reader.readuntil(b"data: 1\n\n")
        await ended.wait()
        await until(lambda: not served.state.tasks)


async def test_a_stream_that_fails_is_cut_and_looks_incomplete(tmp_path: Path) -> None:
    async def words() -> AsyncIterator[bytes]:
        yield b"first"
        raise RuntimeError(CANARY)

    async def stream(gateway: Gateway, call: Call) -> Response:
        return Response(chunks=words())

    async with running(tmp_path, make(CallCollector(stream))) as (served, account, _, _), asyncio.timeout(60):
        with structlog.testing.capture_logs() as logs:
            async with await served.connect() as connection:
                await connection.send(request("POST", "/make", key=account.plain.key, body={}))
                with pytest.raises(asyncio.IncompleteReadError):
                    await connection.read_response()
        await until(lambda: not served.state.tasks)
    assert [line["event"] for line in logs] == ["response broke off"]
    assert CANARY not in json.dumps(logs)


async def test_while_draining_new_work_is_refused_as_safe_to_repeat(tmp_path: Path) -> None:
    collector = CallCollector()
    look = Route("GET", "/look", CallCollector(), "Look")
    async with running(tmp_path, make(collector), look) as (served, account, gateway, edge):
        assert not edge.draining
        edge.draining = True
        assert gateway.draining
        response = await served.call("POST", "/make", key=account.plain.key, body={})
        assert (response.status, response.code) == (503, "UNAVAILABLE")
        assert (response.headers["x-should-retry"], response.headers["retry-after"]) == ("true", "1")
        assert (await served.call("GET", "/look", key=account.plain.key)).status == 200
        assert await records(gateway, account) == []
    assert not collector.calls


async def test_only_http_is_served(tmp_path: Path) -> None:
    async with opened(tmp_path) as gateway:
        with pytest.raises(ValueError, match="websocket"):
            await AsgiApp(gateway)({"type": "websocket"}, None, None)  # type: ignore[arg-type]


async def test_only_the_allowed_hosts_are_served(tmp_path: Path) -> None:
    """A page whose own name resolves to the gateway's address is refused; probes by IP address are not."""
    names = ("media.test", "localhost", "[::1]")
    async with opened(tmp_path, allowed_hosts=names) as gateway, serving(AsgiApp(gateway), gateway.settings) as served:
        for host, path, status in (
            ("media.test", "/openapi.json", 200),
            ("MEDIA.test:8080", "/openapi.json", 200),
            ("media.test.:443", "/openapi.json", 200),
            ("localhost:1", "/openapi.json", 200),
            ("[::1]:8080", "/openapi.json", 200),
            ("[::1]", "/openapi.json", 200),
            ("evil.test", "/openapi.json", 400),
            ("media.test.evil.test", "/openapi.json", 400),
            ("127.0.0.1", "/v1/keys", 400),
            ("127.0.0.1", "/healthz", 200),
        ):
            response = await served.call("GET", path, headers={"host": host})
            assert response.status == status, host
            assert status == 200 or "Host header" in response.json["error"]["message"]
