"""Exchanges with providers as files: how they are written, found and played.

A recording is one JSON file in tests/providers/<slug>/ (an operator's own endpoints: tests/providers/compatible/):

    model      public id of the model
    upstream   the provider's own id, where several go by one public id
    request    the caller's fields, as for the endpoint; images are {"data": text, "content_type", "width", "height"},
               or just the text that stands for their bytes
    exchanges  what must be sent, in call, and what comes back:
                 sent   method, url; `headers` that must be among those sent; `body`, or `form` as pairs
                 reply  status (200), headers, and one of `json`, `text`, `base64`, `msgpack`, `events`
    result     how it must end: status ("completed"), files, and whatever else of a Result is worth saying; or
    error      kind ("rejected", "refused", "busy", "broken", "unreadable"; "unknown" when nobody may be asked again),
               and perhaps message and retry_after_seconds
    cancel     true: after the submission the job is called off
    key        the credential, where its form matters

A chat's answer is handed on as it came, so its result is {"json": …}, or {"events": […]} when it was streamed; `usage`
is what was learned from it, with the cost that the provider reported.

Bytes inside `msgpack` are {"base64": "…"}. A file of the result says all that it has: `url` is where it would be
fetched, `private` that the credential goes there too.
"""

import base64
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

import msgspec

from penstock import providers
from penstock.chat.pricing import Usage
from penstock.chat.request import check_supported, provider_body, read_chat_request
from penstock.chat.stream import Relay, StreamBroken, rename_finish_reasons
from penstock.errors import InvalidRequest
from penstock.fields import TABLES
from penstock.generations.job import part_sizes
from penstock.net.client import HttpClient
from penstock.providers.spec import File, HttpRequest, LocalServer, Model, Provider, Reply, Result, Upload
from penstock.schema import Call, Caller, Request
from penstock.settings import Settings
from penstock.upstream import configured, translate
from penstock.upstream.catalog import Candidate
from penstock.upstream.client import AttemptFailed, OutcomeUnknown, Upstream
from penstock.values import InputImage

HERE = Path(__file__).parent
KEY = "the-credential"
IMAGES = ("image", "mask", "input_reference")

# What an operator would write into penstock.toml.
LAB = {
    "speaks": "openai",
    "name": "The Lab",
    "base_url": "https://lab.example/v1",
    "key_env": "LAB_KEY",
    "models": [
        {"id": "lab/brush", "task": "image", "price": {"unit": "image", "usd": "0.04"}},
        {"id": "lab/scissors", "task": "edit", "price": {"unit": "image", "usd": "0.05"}},
        {"id": "lab/loupe", "task": "upscale", "price": {"unit": "image", "usd": "0.02"}},
        {"id": "lab/reel", "task": "video", "price": {"unit": "second", "usd": "0.10"}},
        {"id": "lab/parrot", "task": "chat", "price": {"unit": "token", "input_usd": "1e-6", "output_usd": "2e-6"}},
    ],
}


@cache
def known() -> Mapping[str, Provider]:
    """Providers by the folder of their recordings."""
    (lab,) = configured.providers({}, {"lab": LAB})
    return {"compatible": lab, **{provider.slug: provider for provider in providers.discover()}}


@dataclass(frozen=True, slots=True)
class Recording:
    path: Path
    told: Mapping[str, Any]

    @property
    def slug(self) -> str:
        return self.path.parent.name

    @property
    def model(self) -> Model:
        """The first of that name, and of that `upstream` if the recording says so, that takes so many images."""
        named = [one for one in known()[self.slug].models if one.id == self.told["model"]]
        found = [one for one in named if self.told.get("upstream", one.upstream) == one.upstream]
        return next(one for one in found if len(found) == 1 or self._fits(one))

    def _fits(self, model: Model) -> bool:
        images = {name: len(list(_images(self.told["request"].get(name)))) for name in IMAGES}
        try:
            translate.check_inputs(model, {translate_name(name): count for name, count in images.items()})
        except InvalidRequest:
            return False
        return True

    @property
    def outcome(self) -> str:
        """`success`, `refusal` or `failure`."""
        if "result" in self.told:
            return "success"
        return "refusal" if self.told["error"]["kind"] == "refused" else "failure"

    def __str__(self) -> str:
        return f"{self.slug}/{self.path.stem}"


@cache
def recordings() -> list[Recording]:
    return [Recording(path, json.loads(path.read_text())) for path in sorted(HERE.glob("*/*.json"))]


# ------------------------------------------------------------------------------------------------------------- request


def request_of(told: Mapping[str, Any], model: Model) -> tuple[Request, dict[str, list[InputImage]]]:
    """The canonical request and its images, checked as the gateway would."""
    table = TABLES[model.op.task]
    said = {name: value for name, value in told["request"].items() if name not in IMAGES}
    request = Request(
        task=model.op.task,
        model=model.id,
        values={table[name].alias_of or name: value for name, value in said.items() if name in table},
        extras={name: value for name, value in said.items() if name not in table},
    )
    images = {name: list(_images(told["request"].get(name))) for name in IMAGES}
    inputs = {translate_name(name): found for name, found in images.items() if found}
    request = translate.with_defaults(request, model)
    translate.check(model, request)
    translate.check_inputs(model, {name: len(found) for name, found in inputs.items()})
    return request, inputs


def translate_name(name: str) -> str:
    return "images" if name == "image" else name


def _images(told: Any) -> Iterator[InputImage]:
    for one in told if isinstance(told, list) else [told] if told else []:
        said: dict[str, Any] = {"data": one} if isinstance(one, str) else one
        yield InputImage(
            data=said["data"].encode(),
            content_type=said.get("content_type", "image/png"),
            width=said.get("width", 64),
            height=said.get("height", 48),
        )


# --------------------------------------------------------------------------------------------------------------- sender


class Script:
    """Stands where the wire stands: checks what is sent against the recording and answers from it."""

    def __init__(self, exchanges: list[dict[str, Any]]) -> None:
        self.left = list(exchanges)

    async def send(self, outgoing: HttpRequest, **_: Any) -> Reply:
        assert self.left, f"sent although nothing more was expected: {outgoing.method} {outgoing.url}"
        exchange = self.left.pop(0)
        expected = exchange["sent"]
        sent = shown(outgoing)
        headers = sent.pop("headers")
        for name, value in expected.get("headers", {}).items():
            assert headers.get(name) == value, f"header {name}: {headers.get(name)!r}"
        # As text, because 5 and 5.0 are equal here and not the same to every server.
        assert written(sent) == written({name: value for name, value in expected.items() if name != "headers"})
        return reply(exchange["reply"])

    @asynccontextmanager
    async def stream(self, outgoing: HttpRequest, **_: Any) -> AsyncIterator["Flow"]:
        answer = await self.send(outgoing)
        yield Flow(answer.status, answer.headers, answer.body)


@dataclass(frozen=True, slots=True)
class Flow:
    """A recorded answer that comes in pieces, cut where no event ends."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    async def read(self, most_bytes: int) -> bytes:
        return self.body[:most_bytes]

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self.body), 50):
            yield self.body[start : start + 50]

    async def aclose(self) -> None:
        """Nothing to let go of."""


def shown(outgoing: HttpRequest) -> dict[str, Any]:
    """A request as a recording writes it."""
    sent: dict[str, Any] = {"method": outgoing.method, "url": outgoing.url, "headers": dict(outgoing.headers)}
    if outgoing.form:
        sent["form"] = [[name, part(value)] for name, value in outgoing.form]
    elif outgoing.body:
        packed = outgoing.headers["content-type"] == "application/msgpack"
        sent["body"] = textual(msgspec.msgpack.decode(outgoing.body)) if packed else json.loads(outgoing.body)
    return sent


def part(value: str | Upload) -> Any:
    if isinstance(value, str):
        return value
    return {"filename": value.filename, "content_type": value.content_type, "data": value.data.decode()}


def written(value: Any) -> str:
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)


def reply(told: Mapping[str, Any]) -> Reply:
    if "json" in told:
        body = json.dumps(told["json"]).encode()
    elif "msgpack" in told:
        body = msgspec.msgpack.encode(binary(told["msgpack"]))
    elif "events" in told:
        body = b"".join(event.encode() + b"\n\n" for event in told["events"])
    else:
        body = base64.b64decode(told["base64"]) if "base64" in told else told.get("text", "").encode()
    return Reply(told.get("status", 200), told.get("headers", {}), body)


def textual(value: Any) -> Any:
    """Bytes, wherever they are, as JSON can say them."""
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, dict):
        return {name: textual(one) for name, one in value.items()}
    return [textual(one) for one in value] if isinstance(value, list) else value


def binary(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {"base64"}:
            return base64.b64decode(value["base64"])
        return {name: binary(one) for name, one in value.items()}
    return [binary(one) for one in value] if isinstance(value, list) else value


# -------------------------------------------------------------------------------------------------------------- playing


def carrier(script: Script) -> Upstream:
    """The gateway's own code from the canonical request on; only the sender is not the real one."""
    local_servers = {slug: cast(LocalServer, script) for slug, provider in known().items() if provider.local}
    return Upstream(cast(HttpClient, script), local_servers, Settings())


async def play(recording: Recording) -> dict[str, Any]:
    """How the exchange ended, in the recording's own words."""
    told, provider = recording.told, known()[recording.slug]
    option = Candidate(provider, recording.model, told.get("key", KEY) if provider.key_env else "")
    script = Script(told["exchanges"])
    upstream = carrier(script)
    try:
        if option.model.op.task == "chat":
            ended = await _talked(upstream, option, told)
        else:
            ended = said(upstream, option, await _carried(upstream, option, told, script))
    except InvalidRequest as problem:
        ended = {"kind": "rejected", "message": problem.message}
    except AttemptFailed as problem:
        ended = {"kind": problem.kind, "message": problem.message}
        ended["retry_after_seconds"] = problem.retry_after_seconds
    except OutcomeUnknown as problem:
        ended = {"kind": "unknown", "message": problem.message}
    assert not script.left, f"never sent: {[exchange['sent'] for exchange in script.left]}"
    return ended


async def _talked(upstream: Upstream, option: Candidate, told: Mapping[str, Any]) -> dict[str, Any]:
    body = {"model": told["model"], **told["request"]}
    caller = Caller("org_1", "key_1")
    talk = read_chat_request(Call(id="req_1", caller=caller, endpoint="", at_ms=0, started=0.0, json=body))
    check_supported(talk, option.model)
    fields = provider_body(talk, option.model)
    finish = option.model.op.settings.get("finish_reasons", {})
    if not talk.stream:
        answer = await upstream.send_chat(option, fields, 60)
        if answer.json.get("error"):
            raise upstream.failure_in_body(option, answer.body)
        shown = json.loads(rename_finish_reasons(answer.body, finish))
        return {"status": "completed", "json": shown, "usage": _usage(answer.json.get("usage"))}
    relay = Relay(keeps_usage=talk.wants_usage, finish_reasons=finish)
    async with aclosing(await upstream.stream_chat(option, fields, 60, 60)) as chunks:
        try:
            passed = b"".join([relay.feed(chunk) async for chunk in chunks])
        except StreamBroken as problem:
            raise upstream.failure_in_body(option, problem.event) from None
    usage = msgspec.to_builtins(relay.usage) if relay.usage else None
    events = passed.decode().removesuffix("\n\n").split("\n\n")
    return {"status": "completed" if relay.done else "failed", "events": events, "usage": _usage(usage)}


def _usage(told: Any) -> dict[str, Any] | None:
    if told is None:
        return None
    usage = msgspec.convert(told, Usage)
    learned = {"input": usage.input, "output": usage.output, "cached": usage.cached}
    return learned | ({} if usage.cost_usd is None else {"cost_usd": str(usage.cost_usd)})


async def _carried(upstream: Upstream, option: Candidate, told: Mapping[str, Any], script: Script) -> Result:
    """Submit, then poll as `attempt` does: trouble with asking is no verdict as long as there is more to hear."""
    request, inputs = request_of(told, option.model)
    count = part_sizes(request.n, option.model.op.native_n)[0]
    result = await upstream.submit(option, request, count, inputs)
    if told.get("cancel"):
        taken = await upstream.cancel(option, result.ref)
        return Result(status="cancelled" if taken else result.status, upstream_id=result.upstream_id)
    ref = dict(result.ref)
    while not result.done:
        try:
            result = await upstream.poll(option, ref)
        except AttemptFailed:
            if not script.left:
                raise
        ref |= result.ref
    if result.status == "failed":
        raise AttemptFailed(option.provider.slug, result.failure_kind, result.message or "")
    return result


def said(upstream: Upstream, option: Candidate, result: Result) -> dict[str, Any]:
    plain: dict[str, Any] = {
        name: getattr(result, name)
        for name in ("status", "upstream_id", "message", "cost_usd", "progress", "poll_after_seconds")
    }
    plain["usage"], plain["ref"] = dict(result.usage), dict(result.ref)
    plain["files"] = [_file(upstream, option, file) for file in result.files]
    return plain


def _file(upstream: Upstream, option: Candidate, file: File) -> dict[str, Any]:
    has = {"content_type": file.content_type, "revised_prompt": file.revised_prompt, "data": textual(file.data)}
    if file.data is None:
        source = upstream.download_source(option, file)
        has |= {"url": source.url, "private": bool(source.headers) or None}
    return {name: value for name, value in has.items() if value is not None}
