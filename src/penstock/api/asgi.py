"""The ASGI application: a request in, its row's endpoint called, an answer or a problem out."""

import re
from collections.abc import Iterable, Mapping, MutableMapping
from functools import lru_cache
from typing import Any

import structlog

from penstock.accounts.keys import ADMIN
from penstock.api import body as receive
from penstock.api import problems, query, responses
from penstock.api.route import Route
from penstock.api.router import Router
from penstock.api.routes import ROUTES
from penstock.errors import InternalError, PermissionDenied, Problem, Unavailable
from penstock.gateway import Gateway
from penstock.schema import Call, Caller, Response
from penstock.values import new_id

Scope = MutableMapping[str, Any]

log = structlog.get_logger("penstock.api")

_NOBODY = Caller(org_id="", key_id="")
_NO_QUERY: Mapping[str, str] = {}
_HOST = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9.-]{0,252}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?")
_MODEL_CHARS = 256


class Exchange:
    """What is known so far about one request, so that a refusal at any point can be answered and recorded."""

    __slots__ = ("at_ms", "call", "caller", "headers", "id", "query", "reached", "route", "started", "unread", "values")

    def __init__(self, gateway: Gateway, route: Route, values: Mapping[str, str], headers: dict[str, str]) -> None:
        self.at_ms: int = gateway.clock.now_ms()
        self.started: float = gateway.clock.monotonic()
        self.id = new_id("req", self.at_ms)
        self.route = route
        self.values = values
        self.headers = headers
        self.unread = receive.has_body(headers)  # a body was announced, and not all of it has been read
        self.query = _NO_QUERY
        self.caller: Caller | None = None
        self.call: Call | None = None
        self.reached = False  # the endpoint was called


class AsgiApp:
    """Callable as ASGI asks. One per process."""

    def __init__(self, gateway: Gateway, routes: Iterable[Route] = ROUTES) -> None:
        self._gateway = gateway
        self._router = Router(routes)
        self._limits = receive.Limits.of(gateway.settings)
        self._public_url: str = gateway.settings.public_url.rstrip("/")

    @property
    def draining(self) -> bool:
        """Whether the process has been told to stop: what is under way goes on, new work is refused."""
        return self._gateway.draining

    @draining.setter
    def draining(self, value: bool) -> None:
        self._gateway.draining = value

    async def __call__(self, scope: Scope, receiver: receive.Receive, sender: responses.Send) -> None:
        if scope["type"] != "http":
            raise ValueError(f"only HTTP is served here, not {scope['type']}")
        # The row alone decides who may call: no header, and no second reading of the path, has a say in it.
        route, values = self._router.find(scope["method"], scope["raw_path"])
        exchange = Exchange(self._gateway, route, values, receive.headers(scope["headers"]))
        try:
            answer = await self._answer(exchange, scope, receiver)
            body = responses.encode(answer)
            if route.modality and body and exchange.caller and exchange.call and not exchange.call.dry_run:
                self._gateway.chat_settlement.sized(exchange.caller.org_id, exchange.id, len(body))
        except receive.Gone:
            return
        except Problem as problem:
            answer = await self._refuse(exchange, problem)
            body = responses.encode(answer)
        except Exception as failure:
            answer = self._fail(exchange, failure)
            body = responses.encode(answer)
        is_head = scope["method"] == "HEAD"
        try:
            await responses.deliver(
                exchange.id, answer, body, is_head=is_head, unread=exchange.unread, receive=receiver, send=sender
            )
        except Exception as failure:  # half an answer is out: all that is left is to hang up, which the server does
            log.error("answer broke off", request_id=exchange.id, route=route.path, trail=problems.trail(failure))
        finally:
            seconds = self._gateway.clock.monotonic() - exchange.started
            self._gateway.metrics.answered(route.method, route.path, answer.status, seconds)

    async def _answer(self, exchange: Exchange, scope: Mapping[str, Any], receiver: receive.Receive) -> Response:
        route, headers = exchange.route, exchange.headers
        receive.check_headers(scope["headers"], headers)
        if self._gateway.draining and route.drains:
            raise Unavailable("This process is shutting down.")
        exchange.caller = await self._caller(route, headers)
        if scope["query_string"]:
            exchange.query = query.parse(scope["query_string"])
            query.read(route.query, exchange.query)
        is_here = scope.get("extensions") is receive.WHOLE
        body = await receive.body(route.takes, headers, receiver, self._limits, is_here=is_here)
        exchange.unread = False
        exchange.call = call = self._call(exchange, exchange.caller, body, scope["scheme"])
        exchange.reached = True
        answer = await route.endpoint(self._gateway, call)
        return await problems.out_of_range(answer) if answer.status == 416 else answer

    async def _caller(self, route: Route, headers: Mapping[str, str]) -> Caller:
        if not route.needs_key:
            return _NOBODY
        caller: Caller = await self._gateway.keys.caller(headers.get("authorization"))
        if route.access == "admin" and ADMIN not in caller.scopes:
            raise PermissionDenied("This call needs a key with the admin scope.")
        return caller

    def _call(self, exchange: Exchange, caller: Caller, body: receive.Body, scheme: str) -> Call:
        return Call(
            id=exchange.id,
            caller=caller,
            endpoint=exchange.route.path,
            at_ms=exchange.at_ms,
            started=exchange.started,
            method=exchange.route.method,
            headers=exchange.headers,
            query=exchange.query,
            path=exchange.values,
            body=body.raw,
            json=body.json,
            is_form=body.is_form,
            form=body.form,
            size_bytes=body.size_bytes,
            base_url=self._public_url or _base_url(scheme, exchange.headers["host"]) or self._gateway.settings.base_url,
        )

    # ------------------------------------------------------------------------------------------------ what goes wrong

    async def _refuse(self, exchange: Exchange, problem: Problem) -> Response:
        route = exchange.route
        if problem.status >= 500 and not isinstance(problem, Unavailable):
            log.warning("call failed", request_id=exchange.id, route=route.path, code=problem.code)
        if route.generation and exchange.caller is not None and problems.is_refusal(problem):
            await self._record(exchange, exchange.caller, problem)
        return problems.answer(problem, generation=route.generation, reached=exchange.reached)

    async def _record(self, exchange: Exchange, caller: Caller, problem: Problem) -> None:
        call = exchange.call or self._call(exchange, caller, receive.NO_BODY, "http")
        if call.dry_run:
            return
        try:
            await self._gateway.requests.reject(call, problem, _model(call), exchange.route.modality)
        except Exception as failure:  # the caller's answer matters more than our note about it
            log.error("refusal not recorded", request_id=exchange.id, trail=problems.trail(failure))

    def _fail(self, exchange: Exchange, failure: Exception) -> Response:
        log.error(
            "call failed",
            request_id=exchange.id,
            route=exchange.route.path,
            code=InternalError.code,
            trail=problems.trail(failure),
        )
        return problems.answer(InternalError(), generation=exchange.route.generation, reached=exchange.reached)


@lru_cache(maxsize=64)
def _base_url(scheme: str, host: str) -> str:
    """Where the caller reached us, for links in its own answer; never a reason to trust anybody."""
    return f"{scheme}://{host}" if _HOST.fullmatch(host) else ""


def _model(call: Call) -> str | None:
    """The model that a refused call named, as far as that can be told."""
    named = dict(call.form).get("model") if call.is_form else (call.json or {}).get("model")
    return named[:_MODEL_CHARS] if isinstance(named, str) else None
