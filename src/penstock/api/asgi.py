"""The ASGI application: find the route of a call, run its endpoint, send the response or an error."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, MutableMapping
from typing import Any

import msgspec
import structlog

from penstock.accounts.aliases import with_alias
from penstock.accounts.key_records import check_scope
from penstock.accounts.refusals import named_model, record_refusal
from penstock.api import once, problems, query, responses
from penstock.api.access_log import DISCONNECTED, AccessLine, AccessLog
from penstock.api.body import (
    NO_BODY,
    Body,
    Disconnected,
    Limits,
    Receive,
    check_headers,
    decode_headers,
    has_body,
    read_body,
)
from penstock.api.body_budget import BodyBudget
from penstock.api.call_headers import check_call_headers
from penstock.api.call_shares import CallShares
from penstock.api.call_spans import describe_call
from penstock.api.cookies import check_page, is_attended, session_token
from penstock.api.cors import Cors
from penstock.api.rates import RECORDED_REFUSALS_PER_MINUTE, CallRates
from penstock.api.route import Route
from penstock.api.router import Router
from penstock.api.routes import ROUTES
from penstock.audit_log import Actor, act_as
from penstock.errors import (
    AuthenticationFailed,
    BudgetReached,
    InternalError,
    InvalidRequest,
    NotFound,
    Problem,
    Unavailable,
    without_frames,
)
from penstock.gateway import Gateway
from penstock.http_server.addresses import address_group
from penstock.http_server.request_head import ARRIVED, HEALTH_PATHS, LINE, PLACES, base_url, host_name
from penstock.interrupts import CallerGone, CallerLine
from penstock.long_bodies.long_body import LongBody
from penstock.schema import Call, Caller, Response, do_nothing
from penstock.telemetry.call_report import open_report
from penstock.telemetry.tracing import Tracing, current_trace_id
from penstock.values import NANOS_PER_USD, OrgId, new_id

Scope = MutableMapping[str, Any]

log = structlog.get_logger("penstock.api")

_ANONYMOUS = Caller(org_id=OrgId(""), key_id="")
_PLACES = 2000  # of connections, for servers that do not say
_NOTHING: Mapping[str, str] = {}


class CallState:
    """What is known about a call so far, so that an error at any point can be answered and recorded."""

    __slots__ = (
        "address", "at_ms", "call", "caller", "code", "headers", "headers_out", "id", "overhead_ms", "query",
        "reached", "report", "route", "seconds", "share_of", "started", "status", "trace_id", "unread", "values",
    )  # fmt: skip

    def __init__(self, gateway: Gateway, route: Route, values: Mapping[str, str], headers: dict[str, str]) -> None:
        self.at_ms: int = gateway.clock.now_ms()
        self.report = open_report(gateway.clock)
        self.started = self.report.started
        self.id = new_id("req", self.at_ms)
        self.route = route
        self.values = values
        self.headers = headers
        self.unread = has_body(headers)  # a body was announced, and not all of it has been read
        self.query = _NOTHING
        self.headers_out: Mapping[str, str] = _NOTHING  # of whatever response there will be
        self.address: str | None = None
        self.caller: Caller | None = None
        self.share_of = OrgId("")  # the organization for which the call is counted
        self.call: Call | None = None
        self.reached = False  # the endpoint was called
        self.status = 0  # of the response
        self.trace_id = current_trace_id() if gateway.tracing is not None else None
        self.code: str | None = None  # of the error that is the response
        self.seconds = 0.0  # until the last byte of the response was sent
        self.overhead_ms: float | None = None  # until the head of the response was sent; only of generations


class AsgiApp:
    """The ASGI application of a process."""

    def __init__(self, gateway: Gateway, routes: Iterable[Route] = ROUTES) -> None:
        self._gateway = gateway
        self._router = Router(routes)
        self._limits = Limits.of(gateway.settings)
        self._budget = BodyBudget(gateway.settings)
        self._rates = CallRates(gateway.clock, gateway.settings.processes)
        self._hosts = frozenset(name.lower() for name in gateway.settings.allowed_hosts)
        self._cors = Cors(gateway.settings.cors_origins) if gateway.settings.cors_origins else None
        self._shares = CallShares()
        self._access_log = AccessLog.of(gateway.settings)
        self._single: Collection[str] = gateway.sign_in.headers if gateway.sign_in else ()
        self._public_url: str = gateway.settings.public_url.rstrip("/")

    @property
    def draining(self) -> bool:
        """True once the process has been told to stop: running calls go on, new work is refused."""
        return self._gateway.draining

    @draining.setter
    def draining(self, value: bool) -> None:
        self._gateway.draining = value

    def interrupt(self) -> None:
        """Interrupt the calls that have not ended in the time that a stopping process gives them."""
        self._gateway.interrupts.stop()

    def close(self) -> None:
        """Write the last access lines; there will be no more calls."""
        if self._access_log is not None:
            self._access_log.write()

    def __call__(self, scope: Scope, receive: Receive, send: responses.Send) -> Awaitable[object]:
        if scope["type"] != "http":
            raise ValueError(f"only HTTP is served, not {scope['type']}")
        tracing = self._gateway.tracing
        return (
            self._serve(scope, receive, send) if tracing is None else self._serve_traced(tracing, scope, receive, send)
        )

    async def _serve_traced(self, tracing: Tracing, scope: Scope, receive: Receive, send: responses.Send) -> None:
        route, _ = self._router.find(scope["method"], scope["raw_path"])
        if route.access == "open":
            await self._serve(scope, receive, send)
            return
        with tracing.start_call(f"{route.method} {route.path}", decode_headers(scope["headers"])) as span:
            state = await self._serve(scope, receive, send)
            describe_call(span, state)

    async def _serve(self, scope: Scope, receive: Receive, send: responses.Send) -> CallState:
        """Answer a call; return what is known about it at its end."""
        # Only the route decides who may call it; headers and other spellings of the path have no influence.
        route, values = self._router.find(scope["method"], scope["raw_path"])
        state = CallState(self._gateway, route, values, decode_headers(scope["headers"]))
        try:
            response, body = await self._make_response(state, scope, receive)
        except (Disconnected, CallerGone) as gone:
            without_frames(gone)
            self._end_call(state, DISCONNECTED)
            return state
        if route.generation:
            state.overhead_ms = state.report.overhead_ms
        try:
            await responses.send_response(
                state.id,
                response,
                body,
                is_head=scope["method"] == "HEAD",
                unread=state.unread,
                has_key=state.caller is not None and state.caller is not _ANONYMOUS,
                receive=receive,
                send=send,
                line=scope.get(LINE) or CallerLine(),
                overhead_ms=state.overhead_ms,
            )
        except Exception as failure:  # part of the response was sent, so the server can only close the connection
            log.error("response broke off", request_id=state.id, route=route.path, trail=problems.trail(failure))
        finally:
            state.seconds = self._gateway.clock.monotonic() - state.started
            self._gateway.metrics.count_response(route.method, route.path, response.status, state.seconds)
            self._end_call(state, response.status)
        return state

    async def _make_response(
        self, state: CallState, scope: Scope, receive: Receive
    ) -> tuple[Response, bytes | LongBody]:
        """The response to a call, and its body. Raises Disconnected or CallerGone if nobody waits for it."""
        try:
            response = await self._respond(state, scope, receive)
            body = responses.encode_body(response)
            if state.route.modality:
                self._record_size(state, body)
        except (Disconnected, CallerGone):
            raise
        except Problem as problem:
            response = await self._refuse(state, without_frames(problem))
            body = responses.encode_body(response)
            if problem.recorded:
                self._record_size(state, body)
        except Exception as failure:
            response = self._fail(state, failure)
            without_frames(failure)
            body = responses.encode_body(response)
        if self._cors is not None or state.headers_out or state.report.headers:
            response = self._with_headers(state, response)
        return response, body

    def _record_size(self, state: CallState, body: bytes | LongBody) -> None:
        """Add the size of the response to the record of an image or a video; chats record theirs when they end."""
        if state.route.modality and body and state.caller and state.call and not state.call.dry_run:
            self._gateway.chat_settlement.set_response_size(state.caller.org_id, state.id, len(body))

    def _end_call(self, state: CallState, status: int) -> None:
        """Write the access line, unless it is a health check that succeeded: there are very many of those."""
        self._shares.leave(state.share_of)
        state.status = status
        if self._access_log is None or (state.route.path in HEALTH_PATHS and status < 400):
            return
        caller = state.caller
        report = state.report
        line = AccessLine(
            method=state.route.method,
            route=state.route.path,
            status=status,
            ms=round((state.seconds or self._gateway.clock.monotonic() - state.started) * 1000, 2),
            overhead_ms=None if state.overhead_ms is None else round(state.overhead_ms, 2),
            code=state.code,
            request_id=state.id,
            org_id=caller.org_id or None if caller else None,
            key_id=caller.key_id or None if caller else None,
            model=named_model(state.call) if state.call and state.route.generation else None,
            provider=report.provider,
            cost_usd=None if report.cost is None else report.cost / NANOS_PER_USD,
            trace_id=state.trace_id,
        )
        self._access_log.add(line)

    def _with_headers(self, state: CallState, response: Response) -> Response:
        """The response with what is left of the caller's limit, what guards said, and the permission to read it."""
        allowed = self._cors.headers(state.headers) if self._cors else _NOTHING
        headers = {**state.headers_out, **state.report.headers, **allowed, **response.headers}
        return msgspec.structs.replace(response, headers=headers)

    async def _respond(self, state: CallState, scope: Mapping[str, Any], receive: Receive) -> Response:
        """Check the call, read its body and run its endpoint."""
        route = state.route
        headers = state.headers
        check_headers(scope["headers"], headers, scope["http_version"], self._single)
        state.address = client[0] if (client := scope.get("client")) else None
        if self._hosts and route.path not in HEALTH_PATHS and host_name(headers["host"]) not in self._hosts:
            raise InvalidRequest("This gateway is not served under the name in the Host header.")
        if self._cors and (preflight := self._cors.preflight(scope["method"], headers)):
            return preflight
        if self._gateway.draining and route.drains:
            raise Unavailable("This process is shutting down.")
        self._check_public(state)
        caller = _ANONYMOUS
        authorization = headers.get("authorization")
        is_open = route.is_voice_list and self._gateway.settings.open_voice_list and not authorization
        if needs_key := route.needs_key and not is_open:
            caller = self._gateway.keys.recent_caller(authorization) or await self._authenticate(state, scope)
        state.caller = caller
        state.share_of = self._shares.enter(caller.org_id, scope.get(PLACES, _PLACES))
        if needs_key:
            check_scope(caller.scopes, route.access, route.path, route.method)
        if caller.requests_per_minute is not None and route.takes_work:
            state.headers_out = self._rates.count_call(caller, caller.requests_per_minute)
        if scope["query_string"]:
            state.query = query.read_all(route, scope["query_string"])
        if route.generation:
            check_call_headers(headers, caller, self._gateway.catalog.providers.known)
        limits = self._limits.for_route(route, self._gateway.settings)
        if arrived := scope.get(ARRIVED):
            body = await read_body(route.takes, headers, receive, limits, arrived=arrived)
            response = await self._call_endpoint(state, scope, body)
        else:
            with self._budget.share(state.caller, headers, receive) as share:
                body = await read_body(route.takes, headers, share.receive, limits, leaves_files=route.takes_files)
                response = await self._call_endpoint(state, scope, body, share.release)
        return await problems.range_not_satisfiable(response) if response.status == 416 else response

    def _check_public(self, state: CallState) -> None:
        """Refuse votes and files of anybody, before they are read, unless they are few and files are wanted."""
        if state.route.is_vote:
            self._rates.count_vote(address_group(state.address) if state.address else "")
        if not state.route.is_public_verify:
            return
        if not self._gateway.settings.public_verify:
            raise NotFound("This gateway verifies files with a key only, at /v1/verify.")
        if state.route.takes != "nothing":
            self._rates.count_public_file(address_group(state.address) if state.address else "")

    def _call_endpoint(
        self, state: CallState, scope: Mapping[str, Any], body: Body, release_body: Callable[[], None] = do_nothing
    ) -> Awaitable[Response]:
        """Begin the endpoint of a call whose body is here."""
        assert state.caller is not None, "it is known before the body is read"
        state.unread = state.unread and state.route.takes == "unread"
        if not state.route.generation:
            caller = state.caller
            actor = caller.user_id or caller.owner_id or caller.key_id or "anybody"
            act_as(Actor(actor, state.address, state.id))
        state.call = call = self._call(state, state.caller, body, scope["scheme"], scope.get(LINE), release_body)
        state.reached = True
        if once.HEADER in state.headers and once.is_administrative(state.route):
            return once.answer_once(self._gateway, call, state.route)
        return state.route.endpoint(self._gateway, call)

    async def _authenticate(self, state: CallState, scope: Mapping[str, Any]) -> Caller:
        """Return the caller of a session, or of a key that was not used just now; raise AuthenticationFailed."""
        try:
            base = self._base_url(scope["scheme"], state.headers)
            if token := session_token(state.headers, base):
                check_page(state.route.method, state.headers, base)
                line, sign_in = scope.get(LINE) or CallerLine(), self._gateway.sign_in
                named = sign_in.subject(state.headers, is_proxied=line.is_proxied) if sign_in else None
                return await self._gateway.sessions.authenticate(token, named, is_used=is_attended(state.headers))
            return await self._gateway.keys.authenticate(state.headers.get("authorization"))
        except AuthenticationFailed:
            self._rates.count_bad_key(address_group(state.address) if state.address else "")
            raise

    def _base_url(self, scheme: str, headers: Mapping[str, str]) -> str:
        return self._public_url or base_url(scheme, headers["host"]) or self._gateway.settings.base_url

    def _call(
        self,
        state: CallState,
        caller: Caller,
        body: Body,
        scheme: str,
        line: CallerLine | None = None,
        release_body: Callable[[], None] = do_nothing,
    ) -> Call:
        return with_alias(
            Call(
                id=state.id,
                caller=caller,
                endpoint=state.route.path,
                at_ms=state.at_ms,
                started=state.started,
                method=state.route.method,
                headers=state.headers,
                query=state.query,
                path=state.values,
                body=body.raw,
                json=body.json,
                is_form=body.is_form,
                form=body.form,
                size_bytes=body.size_bytes,
                base_url=self._base_url(scheme, state.headers),
                address=state.address,
                line=line or CallerLine(),
                trace_id=state.trace_id,
                release_body=release_body,
            )
        )

    # --------------------------------------------------------------------------------------------------------- errors

    async def _refuse(self, state: CallState, problem: Problem) -> Response:
        route = state.route
        state.code = problem.code
        if problem.status >= 500 and not isinstance(problem, Unavailable):
            log.warning("call failed", request_id=state.id, route=route.path, code=problem.code)
        response = problems.problem_response(problem, generation=route.generation, reached=state.reached)
        if isinstance(problem, BudgetReached):
            await self._gateway.alerts.note_refusal(problem.budget_of, problem.label)
        if route.generation and state.caller is not None and problems.is_refusal(problem):
            await self._record(state, state.caller, problem, len(responses.encode_body(response)))
        return response

    async def _record(self, state: CallState, caller: Caller, problem: Problem, response_bytes: int) -> None:
        """Write a request record with status `rejected`."""
        call = state.call or self._call(state, caller, NO_BODY, "http")
        if call.dry_run:
            return
        count = self._rates.count_refusal(caller.key_id)
        if count > RECORDED_REFUSALS_PER_MINUTE:  # the metrics count every response by its status
            if count == RECORDED_REFUSALS_PER_MINUTE + 1:
                log.warning("refusals of this key are not recorded for a minute", key_id=caller.key_id)
            return
        try:
            route = state.route
            await record_refusal(self._gateway.requests, call, problem, route.kind, route.modality, response_bytes)
        except Exception as failure:  # the caller gets its response even if the record cannot be written
            log.error("refusal not recorded", request_id=state.id, trail=problems.trail(failure))

    def _fail(self, state: CallState, failure: Exception) -> Response:
        state.code = InternalError.code
        known = {"request_id": state.id, "route": state.route.path, "code": InternalError.code}
        log.error("call failed", trail=problems.trail(failure), **known)
        return problems.problem_response(InternalError(), generation=state.route.generation, reached=state.reached)
