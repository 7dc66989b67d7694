"""A request through the edge: who is let in, what an endpoint is told, and what is said and kept when it fails."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import structlog

from penstock import errors
from penstock.accounts.requests import Filters
from penstock.api.asgi import AsgiApp
from penstock.api.generations import DRY_RUN
from penstock.api.route import Endpoint, Route
from penstock.fields import UploadedFile
from penstock.gateway import Gateway
from penstock.schema import Call, Response
from penstock.values import is_id
from tests.api.accounts import Account, first_account, opened
from tests.api.raw_http import Server, request, serving, until

CANARY = "a-prompt-that-must-not-be-logged"


class Kept:
    """An endpoint that keeps its calls and does what it is told with them."""

    def __init__(self, does: Endpoint | None = None) -> None:
        self.calls: list[Call] = []
        self._does = does

    async def __call__(self, gateway: Gateway, call: Call) -> Response:
        self.calls.append(call)
        return await self._does(gateway, call) if self._does else Response(json={"made": True})


def raising(problem: Exception) -> Kept:
    async def does(gateway: Gateway, call: Call) -> Response:
        raise problem

    return Kept(does)


def make(endpoint: Endpoint, **more: Any) -> Route:
    """A row that may cost money."""
    rest = {"takes": "json or form", "generation": True, "drains": True, "modality": "image", "query": DRY_RUN}
    return Route("POST", "/make", endpoint, "Make", **{**rest, **more})


@asynccontextmanager
async def running(folder: Path, *routes: Route, **said: Any) -> AsyncIterator[tuple[Server, Account, Gateway, AsgiApp]]:
    async with opened(folder, **said) as gateway:
        account = await first_account(gateway)
        edge = AsgiApp(gateway, routes)
        async with serving(edge, gateway.settings) as served:
            yield served, account, gateway, edge


async def records(gateway: Gateway, account: Account) -> list[dict[str, Any]]:
    return (await gateway.requests.list_records(account.org_id, Filters())).data


# ----------------------------------------------------------------------------------------------------- what calls carry


async def test_an_endpoint_gets_every_part_of_a_call(tmp_path: Path) -> None:
    kept = Kept()
    row = Route("POST", "/of/{id}/{rest:path}", kept, "Of", takes="json")
    async with running(tmp_path, row) as (served, account, gateway, _):
        before = gateway.clock.now_ms()
        said = await served.ask(
            "POST",
            "/of/a%2Fb/c/d?x=1&y=%20",
            key=account.plain.key,
            body=b'{"n": 1}',
            headers={"Content-Type": "application/json", "X-Service-Session-Id": "s1"},
        )
    [call] = kept.calls
    assert (said.json, said.headers.get("connection")) == ({"made": True}, None)
    assert is_id(call.id, "req")
    assert said.headers["x-request-id"] == said.headers["x-service-request-id"] == call.id
    assert (call.caller.org_id, call.caller.key_id) == (account.org_id, account.plain.id)
    assert (call.method, call.endpoint, dict(call.path)) == ("POST", row.path, {"id": "a/b", "rest": "c/d"})
    assert (dict(call.query), call.headers["x-service-session-id"]) == ({"x": "1", "y": " "}, "s1")
    assert (call.body, call.json, call.size_bytes, call.is_form) == (b'{"n": 1}', {"n": 1}, 8, False)
    assert before <= call.at_ms <= before + 5000
    assert call.started > 0


async def test_a_form_reaches_the_endpoint_in_order(tmp_path: Path) -> None:
    kept = Kept()
    body = (
        b'--b\r\nContent-Disposition: form-data; name="prompt"\r\n\r\nfox\r\n'
        b'--b\r\nContent-Disposition: form-data; name="image"; filename="f.png"\r\n'
        b"Content-Type: image/png\r\n\r\n\x89\r\n--b--\r\n"
    )
    async with running(tmp_path, make(kept)) as (served, account, _, _):
        headers = {"content-type": "multipart/form-data; boundary=b"}
        assert (await served.ask("POST", "/make", key=account.plain.key, body=body, headers=headers)).status == 200
    [call] = kept.calls
    assert call.form == (("prompt", "fox"), ("image", UploadedFile(b"\x89", "f.png", "image/png")))
    assert (call.is_form, call.json, call.size_bytes) == (True, None, len(body))


@pytest.mark.parametrize(
    ("host", "said", "expected"),
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
    tmp_path: Path, host: str, said: dict[str, Any], expected: str
) -> None:
    kept = Kept()
    async with running(tmp_path, make(kept), **said) as (served, account, _, _):
        await served.ask("POST", "/make", key=account.plain.key, body={}, headers={"host": host})
    assert kept.calls[0].base_url == expected


async def test_a_large_body_is_read_completely(tmp_path: Path) -> None:
    kept = Kept()
    async with running(tmp_path, make(kept)) as (served, account, _, _):
        said = await served.ask("POST", "/make", key=account.plain.key, body={"image": "A" * 5_000_000})
    assert said.status == 200
    assert len(kept.calls[0].json["image"]) == 5_000_000


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
    kept = Kept()
    async with running(tmp_path, make(kept)) as (served, account, gateway, _):
        await gateway.keys.revoke_key(account.org_id, account.plain.id)
        answers = [
            await served.ask("POST", "/make", body={}),
            *[await served.ask("POST", "/make", key=key, body={}) for key in HOSTILE_KEYS],
            await served.ask("POST", "/make", key=account.plain.key, body={}),
            await served.ask("POST", "/make", key=account.admin.key[:-1] + "x", body={}),
            await served.ask("POST", "/make", body={}, headers={"authorization": f"Basic {account.admin.key}"}),
            await served.ask("POST", "/make", body={}, headers={"x-api-key": account.admin.key}),
        ]
        async with await served.line() as line:
            twice = request("POST", "/make", key=account.admin.key, body={})
            await line.send(twice.replace(b"\r\n\r\n", b"\r\nauthorization: Bearer x\r\n\r\n", 1))
            answers.append(await line.hear())
        assert await records(gateway, account) == []
    assert not kept.calls
    for said in answers:
        assert (said.status, said.code) == (401, "AUTHENTICATION_FAILED")
        assert said.headers["www-authenticate"] == "Bearer"
        assert said.headers["x-should-retry"] == "false"
    assert len({said.body for said in answers}) == 1


async def test_administration_needs_the_admin_scope(tmp_path: Path) -> None:
    kept = Kept()
    async with running(tmp_path, Route("GET", "/rule", kept, "Rule", access="admin")) as (served, account, _, _):
        said = await served.ask("GET", "/rule", key=account.plain.key)
        assert (said.status, said.code) == (403, "PERMISSION_DENIED")
        assert not kept.calls
        assert (await served.ask("GET", "/rule", key=account.admin.key)).status == 200


async def test_without_a_key_the_body_is_not_read(tmp_path: Path) -> None:
    async with running(tmp_path, make(Kept())) as (served, _, _, _), await served.line() as line:
        async with asyncio.timeout(5):
            await line.send(
                b"POST /make HTTP/1.1\r\nhost: test\r\nexpect: 100-continue\r\ncontent-length: 1000000\r\n\r\n"
            )
            said = await line.hear()  # and no 100 before it
            assert said.status == 401
            assert said.headers["connection"] == "close"


async def test_expect_100_continue_is_answered(tmp_path: Path) -> None:
    async with running(tmp_path, make(Kept())) as (served, account, _, _), await served.line() as line:
        async with asyncio.timeout(5):
            head, body = request("POST", "/make", key=account.plain.key, body={}).split(b"\r\n\r\n")
            await line.send(head + b"\r\nexpect: 100-continue\r\n\r\n")
            assert await line.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
            await line.send(body)
            assert (await line.hear()).status == 200


async def test_only_the_route_decides_who_may_call(tmp_path: Path) -> None:
    """Neither the Host header nor another way to write the path opens what needs a key."""
    kept = Kept()
    routes = (Route("GET", "/v1/keys", kept, "Keys"), Route("GET", "/healthz", Kept(), "Health", access="open"))
    async with running(tmp_path, *routes) as (served, _, _, _):
        for host in ("x/healthz?", "x/healthz#", "healthz", "127.0.0.1/healthz", "x@healthz", "test:80/healthz"):
            assert (await served.ask("GET", "/v1/keys", headers={"host": host})).status == 401
        for more in ({"x-forwarded-host": "x"}, {"x-original-url": "/healthz"}, {"x-forwarded-prefix": "/healthz"}):
            assert (await served.ask("GET", "/v1/keys", headers=more)).status == 401
        for path in ("http://test/v1/keys", "http://healthz/v1/keys", "/v1/keys?/healthz"):
            assert (await served.ask("GET", path)).status == 401
        for path in ("//v1/keys", "/./v1/keys", "/%2e/v1/keys", "/healthz/../v1/keys", "/v1/keys/", "/v1/keys;x",
                     "/V1/KEYS", "/v1%2Fkeys", "/v1/keys/.", "*"):  # fmt: skip
            assert (await served.ask("GET", path)).status == 404
        for method in ("HEAD", "OPTIONS", "PUT", "POST", "DELETE", "PATCH", "TRACE"):
            assert (await served.ask(method, "/v1/keys")).status == 401
    assert not kept.calls


# ------------------------------------------------------------------------------------------------------ what goes wrong


async def test_unknown_paths_and_wrong_methods_have_the_error_envelope(tmp_path: Path) -> None:
    async with running(tmp_path, make(Kept())) as (served, account, _, _):
        said = await served.ask("GET", "/nowhere")
        assert (said.status, said.code) == (404, "NOT_FOUND")
        said = await served.ask("PUT", "/make", key=account.plain.key)
        assert (said.status, said.code, said.headers["allow"]) == (405, "METHOD_NOT_ALLOWED", "POST, OPTIONS")
        assert (await served.ask("HEAD", "/nowhere")).body == b""


async def test_an_internal_error_is_a_500_without_details(tmp_path: Path) -> None:
    broken = raising(RuntimeError(CANARY))

    async def unencodable(gateway: Gateway, call: Call) -> Response:
        return Response(json={"x": object()})

    routes = (make(broken), Route("GET", "/other", unencodable, "Other"))
    async with running(tmp_path, *routes) as (served, account, gateway, _):
        with structlog.testing.capture_logs() as logs:
            said = await served.ask("POST", f"/make?secret={CANARY}", key=account.plain.key, body={"prompt": CANARY})
            other = await served.ask("GET", "/other", key=account.plain.key)
        assert await records(gateway, account) == []
    assert (said.status, said.code, said.headers["x-should-retry"]) == (500, "INTERNAL_ERROR", "false")
    assert (other.status, other.code) == (500, "INTERNAL_ERROR")
    assert [line["event"] for line in logs] == ["call failed", "call failed"]
    assert (logs[0]["request_id"], logs[0]["route"]) == (said.headers["x-request-id"], "/make")
    assert logs[0]["trail"][0] == "RuntimeError"
    assert CANARY not in json.dumps(logs) + said.body.decode()
    assert account.plain.key not in json.dumps(logs)


async def test_a_refused_generation_is_recorded(tmp_path: Path) -> None:
    problem = errors.InvalidRequest("`n` must be from 1 to 10.", param="n")
    async with running(tmp_path, make(raising(problem))) as (served, account, gateway, _):
        said = await served.ask(
            "POST",
            "/make",
            key=account.plain.key,
            body={"model": "m", "n": 11},
            headers={"traceparent": f"00-{'a' * 32}-{'b' * 16}-01", "x-service-session-id": "s"},
        )
        [record] = await records(gateway, account)
    assert (said.status, said.code, said.headers["x-should-retry"]) == (400, "INVALID_REQUEST", "false")
    assert said.json["error"]["param"] == "n"
    assert record["id"] == said.headers["x-request-id"]
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
    kept = Kept()
    form = b'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nm\r\n--b--\r\n'
    async with running(tmp_path, make(kept), json_bytes=100) as (served, account, gateway, _):
        key = account.plain.key
        codes = [
            (await served.ask("POST", "/make", key=key, body=b"{", headers={"content-type": "application/json"})).code,
            (await served.ask("POST", "/make", key=key, body={"a": "x" * 100})).code,
            (await served.ask("POST", "/make", key=key, body=b"a", headers={"content-type": "text/plain"})).code,
            (await served.ask("POST", "/make?dryRun=maybe", key=key, body={})).code,
            (
                await served.ask("POST", "/make", key=key, body=form, headers={"content-type": "multipart/form-data"})
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
    assert not kept.calls


async def test_a_dry_run_leaves_no_record(tmp_path: Path) -> None:
    row = make(raising(errors.ModelNotFound("No.")))
    async with running(tmp_path, row) as (served, account, gateway, _):
        for word in ("true", "True"):
            said = await served.ask("POST", f"/make?dryRun={word}", key=account.plain.key, body={"model": "m"})
            assert said.code == "MODEL_NOT_FOUND"
        assert await records(gateway, account) == []
        await served.ask("POST", "/make?dryRun=false", key=account.plain.key, body={"model": "m"})
        assert len(await records(gateway, account)) == 1


async def test_other_problems_are_not_recorded_as_refusals(tmp_path: Path) -> None:
    known = errors.RateLimited("The provider is busy.")
    known.recorded = True
    for problem in (errors.UpstreamError("x"), errors.StorageUnavailable("x"), known):
        async with running(tmp_path / type(problem).__name__, make(raising(problem))) as (served, account, gateway, _):
            said = await served.ask("POST", "/make", key=account.plain.key, body={"model": "m"})
            assert (said.code, said.headers["x-should-retry"]) == (problem.code, "false")
            assert await records(gateway, account) == []


async def test_a_refusal_that_cannot_be_recorded_still_gets_its_response(tmp_path: Path) -> None:
    async def refuse(gateway: Gateway, call: Call) -> Response:
        await gateway.store.close()
        raise errors.InvalidRequest("Wrong.")

    async with running(tmp_path, make(Kept(refuse))) as (served, account, _, _):
        with structlog.testing.capture_logs() as logs:
            said = await served.ask("POST", "/make", key=account.plain.key, body={"prompt": CANARY})
    assert said.code == "INVALID_REQUEST"
    assert [line["event"] for line in logs] == ["refusal not recorded"]
    assert CANARY not in json.dumps(logs)


# ------------------------------------------------------------------------------------------------------- sizes and time


async def test_a_body_over_the_limit_gets_its_response_before_the_connection_closes(tmp_path: Path) -> None:
    """The caller goes on sending, and reads only when it is done, as most do."""
    async with running(tmp_path, make(Kept()), json_bytes=1000) as (served, account, _, _):
        for framing in (b"content-length: 3000000\r\n\r\n", b"transfer-encoding: chunked\r\n\r\n"):
            async with await served.line() as line, asyncio.timeout(10):
                head = request("POST", "/make", key=account.plain.key, headers={"content-type": "application/json"})
                await line.send(head.removesuffix(b"\r\n") + framing)
                piece = b" " * 30_000
                for _ in range(100):
                    await line.send(piece if b"length" in framing else b"%x\r\n%s\r\n" % (len(piece), piece))
                if b"chunked" in framing:
                    await line.send(b"0\r\n\r\n")
                said = await line.hear()
                assert (said.status, said.code) == (413, "PAYLOAD_TOO_LARGE")
                assert said.headers["connection"] == "close"
                assert await line.is_closed()


async def test_a_body_that_stops_arriving_is_a_408(tmp_path: Path) -> None:
    async with running(tmp_path, make(Kept()), body_seconds=0.2) as (served, account, gateway, _), asyncio.timeout(10):
        async with await served.line() as line:
            whole = request("POST", "/make", key=account.plain.key, body={"model": "m"})
            await line.send(whole[:-3])
            said = await line.hear()
        assert (said.status, said.code, said.headers["x-should-retry"]) == (408, "REQUEST_TIMEOUT", "true")
        [record] = await records(gateway, account)
        assert record["error_code"] == "REQUEST_TIMEOUT"


async def test_a_disconnect_in_the_middle_of_a_body_ends_the_call(tmp_path: Path) -> None:
    kept = Kept()
    async with running(tmp_path, make(kept)) as (served, account, gateway, _):
        async with await served.line() as line:
            await line.send(request("POST", "/make", key=account.plain.key, body={"model": "m"})[:-3])
            await until(lambda: served.state.tasks)
        await until(lambda: not served.state.tasks)
        assert not kept.calls
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

    async with running(tmp_path, make(Kept(slow))) as (served, account, _, _), asyncio.timeout(5):
        async with await served.line() as line:
            await line.send(request("POST", "/make", key=account.plain.key, body={}))
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

    async with running(tmp_path, make(Kept(stream))) as (served, account, _, _), asyncio.timeout(5):
        async with await served.line() as line:
            await line.send(request("POST", "/make", key=account.plain.key, body={}))
            await line.reader.readuntil(b"data: 1\n\n")
        await ended.wait()
        await until(lambda: not served.state.tasks)


async def test_a_stream_that_fails_is_cut_and_looks_incomplete(tmp_path: Path) -> None:
    async def words() -> AsyncIterator[bytes]:
        yield b"first"
        raise RuntimeError(CANARY)

    async def stream(gateway: Gateway, call: Call) -> Response:
        return Response(chunks=words())

    async with running(tmp_path, make(Kept(stream))) as (served, account, _, _), asyncio.timeout(5):
        with structlog.testing.capture_logs() as logs:
            async with await served.line() as line:
                await line.send(request("POST", "/make", key=account.plain.key, body={}))
                with pytest.raises(asyncio.IncompleteReadError):
                    await line.hear()
        await until(lambda: not served.state.tasks)
    assert [line["event"] for line in logs] == ["response broke off"]
    assert CANARY not in json.dumps(logs)


async def test_while_draining_new_work_is_refused_as_safe_to_repeat(tmp_path: Path) -> None:
    kept = Kept()
    look = Route("GET", "/look", Kept(), "Look")
    async with running(tmp_path, make(kept), look) as (served, account, gateway, edge):
        assert not edge.draining
        edge.draining = True
        assert gateway.draining
        said = await served.ask("POST", "/make", key=account.plain.key, body={})
        assert (said.status, said.code) == (503, "UNAVAILABLE")
        assert (said.headers["x-should-retry"], said.headers["retry-after"]) == ("true", "1")
        assert (await served.ask("GET", "/look", key=account.plain.key)).status == 200
        assert await records(gateway, account) == []
    assert not kept.calls


async def test_only_http_is_served(tmp_path: Path) -> None:
    async with opened(tmp_path) as gateway:
        with pytest.raises(ValueError, match="websocket"):
            await AsgiApp(gateway)({"type": "websocket"}, None, None)  # type: ignore[arg-type]
