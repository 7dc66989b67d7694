"""Recorded exchanges with providers: the format of the files, and the code that runs them.

A recording is one JSON file in tests/providers/<slug>/ (those of penstock.toml: tests/providers/compatible/):

    model      public id of the model
    upstream   the provider's name for the model, if several models share a public id
    request    the caller's fields, as for the endpoint; images are {"data": text, "content_type", "width", "height"},
               or just the text that is used as their bytes; an input video is `edit_video` or `extend_video`, and has
               `seconds` and `frames` too
    exchanges  what must be sent, in this order, and what comes back:
                 sent   method, url; `headers` that must be sent, among others; `body`, or `form` as pairs; in a
                        body, `*` stands for a random value
                 reply  status (200), headers, and one of `json`, `text`, `base64`, `msgpack`, `events`
    result     how it must end: status ("completed"), files, and other fields of a Result to check; or
    error      kind ("rejected", "refused", "busy", "broken", "unreadable"; "unknown": no other provider may be tried),
               and perhaps message and retry_after_seconds
    cancel     true: the job is cancelled after the submission
    key        the credential, if its form matters

A chat response is passed on, so its result is {"json": …}, or {"events": […]} if it was streamed; `usage` is what was
read from it, with the cost that the provider reported.

Bytes inside `msgpack` are {"base64": "…"}. A file of the result has all its fields: `url` is where it would be fetched,
`private` means that the credential is sent there.
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
from penstock.chat.normalise import rename_finish_reasons
from penstock.chat.pricing import Usage
from penstock.chat.provider_body import check_supported, provider_body
from penstock.chat.request import read_chat_request
from penstock.chat.stream import Relay, StreamBroken
from penstock.errors import InvalidRequest
from penstock.fields import TABLES
from penstock.generation_jobs.parts import part_sizes
from penstock.models import configured
from penstock.net.client import HttpClient
from penstock.providers.row_names import input_row
from penstock.providers.spec import File, HttpRequest, LocalServer, Model, Provider, Reply, Result, Upload
from penstock.schema import Call, Caller, Input, Request
from penstock.settings import Settings
from penstock.upstream import checks, translate
from penstock.upstream.candidate import Candidate
from penstock.upstream.client import Upstream
from penstock.upstream.failures import AttemptFailed, Failure, failure_in_body
from penstock.values import INPUT_VIDEOS, InputFile, OrgId

ORG = OrgId("org_1")

HERE = Path(__file__).parent
KEY = "the-credential"
SOUND_TASKS = ("speech", "sound", "transcription", "translation")  # have fakes of vendors, no recordings
UNLIKE_IMAGES = ("chat", *SOUND_TASKS)
IMAGES = ("image", "mask", "input_reference", *INPUT_VIDEOS)

# A provider as penstock.toml describes it.
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
def known_providers() -> Mapping[str, Provider]:
    """Providers by the folder of their recordings."""
    (lab,) = configured.providers({}, {"lab": LAB})
    return {"compatible": lab, **{provider.slug: provider for provider in providers.discover()}}


@dataclass(frozen=True, slots=True)
class Recording:
    path: Path
    content: Mapping[str, Any]

    @property
    def slug(self) -> str:
        return self.path.parent.name

    @property
    def model(self) -> Model:
        """The first of that name, and of that `upstream` if the recording says so, that takes so many images."""
        named = [model for model in known_providers()[self.slug].models if model.id == self.content["model"]]
        found = [model for model in named if self.content.get("upstream", model.upstream) == model.upstream]
        return next(model for model in found if len(found) == 1 or self._fits(model))

    def _fits(self, model: Model) -> bool:
        images = {name: len(list(_input_images(self.content["request"].get(name)))) for name in IMAGES}
        try:
            checks.check_inputs(model, {input_row(name): count for name, count in images.items()})
        except InvalidRequest:
            return False
        return True

    @property
    def outcome(self) -> str:
        """`success`, `refusal` or `failure`."""
        if "result" in self.content:
            return "success"
        return "refusal" if self.content["error"]["kind"] == "refused" else "failure"

    def __str__(self) -> str:
        return f"{self.slug}/{self.path.stem}"


@cache
def recordings() -> list[Recording]:
    return [Recording(path, json.loads(path.read_text())) for path in sorted(HERE.glob("*/*.json"))]


# ------------------------------------------------------------------------------------------------------------- request


def canonical_request(content: Mapping[str, Any], model: Model) -> tuple[Request, dict[str, list[InputFile]]]:
    """The canonical request and its images, checked as the gateway would."""
    table = TABLES[model.op.task]
    fields = {name: value for name, value in content["request"].items() if name not in IMAGES}
    request = Request(
        task=model.op.task,
        model=model.id,
        values={table[name].alias_of or name: value for name, value in fields.items() if name in table},
        extras={name: value for name, value in fields.items() if name not in table},
    )
    images = {name: list(_input_images(content["request"].get(name))) for name in IMAGES}
    inputs = {input_row(name): found for name, found in images.items() if found}
    roles = {"input_reference": "reference", **{name: name for name in INPUT_VIDEOS}}
    described = [
        Input(role, "", item.content_type, item.width, item.height, 0, item.seconds, item.frames)
        for name, role in roles.items()
        for item in inputs.get(name, ())
    ]
    written = msgspec.structs.replace(request, inputs=tuple(described))
    request = translate.with_defaults(written, model)
    checks.check(model, request)
    checks.check_inputs(model, {name: len(found) for name, found in inputs.items()})
    return request, inputs


def _input_images(content: Any) -> Iterator[InputFile]:
    for item in content if isinstance(content, list) else [content] if content else []:
        fields: dict[str, Any] = {"data": item} if isinstance(item, str) else item
        yield InputFile(
            data=fields["data"].encode(),
            content_type=fields.get("content_type", "image/png"),
            width=fields.get("width", 64),
            height=fields.get("height", 48),
            seconds=fields.get("seconds", 0.0),
            frames=fields.get("frames", 0),
        )


# --------------------------------------------------------------------------------------------------------------- sender


class ScriptedHttpClient:
    """Takes the place of HttpClient: checks what is sent against the recording, and replies from it."""

    def __init__(self, exchanges: list[dict[str, Any]]) -> None:
        self.left = list(exchanges)

    async def send(self, outgoing: HttpRequest, for_org: OrgId | None = None, **_: Any) -> Reply:
        assert self.left, f"sent although nothing more was expected: {outgoing.method} {outgoing.url}"
        exchange = self.left.pop(0)
        expected = exchange["sent"]
        sent = request_fields(outgoing)
        headers = sent.pop("headers")
        for name, value in expected.get("headers", {}).items():
            assert headers.get(name) == value, f"header {name}: {headers.get(name)!r}"
        if "body" in sent:
            sent["body"] = without_random(sent["body"], expected.get("body"))
        # As text, because 5 and 5.0 are equal here and not the same to every server.
        assert as_json(sent) == as_json({name: value for name, value in expected.items() if name != "headers"})
        return recorded_reply(exchange["reply"])

    async def send_guarded(self, outgoing: HttpRequest, **_: Any) -> Reply:
        """A file that is sent as it is; a recording has it as text."""
        exchange = self.left.pop(0)
        text = outgoing.whole_body.decode()
        assert exchange["sent"] == {"method": outgoing.method, "url": outgoing.url, "text": text}
        return recorded_reply(exchange["reply"])

    @asynccontextmanager
    async def stream(self, outgoing: HttpRequest, **_: Any) -> AsyncIterator["RecordedStream"]:
        reply = await self.send(outgoing)
        yield RecordedStream(reply.status, reply.headers, bytes(reply.body))


@dataclass(frozen=True, slots=True)
class RecordedStream:
    """A recorded stream in pieces of 50 bytes, so that events are cut."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    async def read(self, most_bytes: int) -> bytes:
        return self.body[:most_bytes]

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self.body), 50):
            yield self.body[start : start + 50]

    async def aclose(self) -> None:
        """Nothing to close."""


def request_fields(outgoing: HttpRequest) -> dict[str, Any]:
    """A request in the form of a recording."""
    sent: dict[str, Any] = {"method": outgoing.method, "url": outgoing.url, "headers": dict(outgoing.headers)}
    if outgoing.form:
        sent["form"] = [[name, form_part(value)] for name, value in outgoing.form]
    elif outgoing.body:
        packed = outgoing.headers["content-type"] == "application/msgpack"
        sent["body"] = (
            bytes_to_base64(msgspec.msgpack.decode(outgoing.whole_body)) if packed else json.loads(outgoing.whole_body)
        )
    return sent


def without_random(sent: Any, expected: Any) -> Any:
    """The body with `*` in the places where the recording has it, for values that are random."""
    if expected == "*":
        return "*"
    if isinstance(sent, dict) and isinstance(expected, dict):
        return {name: without_random(value, expected.get(name)) for name, value in sent.items()}
    if isinstance(sent, list) and isinstance(expected, list) and len(sent) == len(expected):
        return [without_random(one, other) for one, other in zip(sent, expected, strict=True)]
    return sent


def form_part(value: str | Upload) -> Any:
    if isinstance(value, str):
        return value
    return {"filename": value.filename, "content_type": value.content_type, "data": bytes(value.data).decode()}


def as_json(value: Any) -> str:
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)


def recorded_reply(content: Mapping[str, Any]) -> Reply:
    if "json" in content:
        body = json.dumps(content["json"]).encode()
    elif "msgpack" in content:
        body = msgspec.msgpack.encode(base64_to_bytes(content["msgpack"]))
    elif "events" in content:
        body = b"".join(event.encode() + b"\n\n" for event in content["events"])
    else:
        body = base64.b64decode(content["base64"]) if "base64" in content else content.get("text", "").encode()
    return Reply(content.get("status", 200), content.get("headers", {}), body)


def bytes_to_base64(value: Any) -> Any:
    """The value with all bytes inside it as base64 objects, for JSON."""
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, dict):
        return {name: bytes_to_base64(item) for name, item in value.items()}
    return [bytes_to_base64(item) for item in value] if isinstance(value, list) else value


def base64_to_bytes(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {"base64"}:
            return base64.b64decode(value["base64"])
        return {name: base64_to_bytes(item) for name, item in value.items()}
    return [base64_to_bytes(item) for item in value] if isinstance(value, list) else value


# -------------------------------------------------------------------------------------------------------------- playing


def scripted_upstream(script: ScriptedHttpClient) -> Upstream:
    """The real Upstream with a scripted HTTP client."""
    local_servers = {slug: cast(LocalServer, script) for slug, provider in known_providers().items() if provider.local}
    return Upstream(cast(HttpClient, script), local_servers, Settings())


async def run_recording(recording: Recording) -> dict[str, Any]:
    """Run a recording and return how it ended, in the form of its `result` or `error`."""
    content, provider = recording.content, known_providers()[recording.slug]
    candidate = Candidate(provider, recording.model, content.get("key", KEY) if provider.key_env else "")
    script = ScriptedHttpClient(content["exchanges"])
    upstream = scripted_upstream(script)
    try:
        if candidate.model.op.task == "chat":
            ended = await _run_chat(upstream, candidate, content)
        else:
            ended = result_fields(upstream, candidate, await _run_generation(upstream, candidate, content, script))
    except InvalidRequest as problem:
        ended = {"kind": "rejected", "message": problem.message}
    except AttemptFailed as problem:
        failure = problem.failure
        ended = {"kind": "unknown" if failure.unknown else failure.kind, "message": failure.message}
        if not failure.unknown:
            ended["retry_after_seconds"] = failure.retry_after_seconds
    assert not script.left, f"never sent: {[exchange['sent'] for exchange in script.left]}"
    return ended


async def _run_chat(upstream: Upstream, candidate: Candidate, content: Mapping[str, Any]) -> dict[str, Any]:
    body = {"model": content["model"], **content["request"]}
    caller = Caller(OrgId("org_1"), "key_1")
    call = Call(id="req_1", caller=caller, endpoint="", at_ms=0, started=0.0, json=body)
    request = read_chat_request(call, Settings())
    check_supported(request, candidate.model)
    fields = provider_body(request, candidate.model, None)
    finish = candidate.model.op.settings.get("finish_reasons", {})
    if not request.stream:
        reply = await upstream.send_chat(candidate, fields, 60, for_org=ORG)
        if reply.json.get("error"):
            raise AttemptFailed(failure_in_body(candidate, bytes(reply.body)))
        completion = json.loads(rename_finish_reasons(bytes(reply.body), finish))
        return {"status": "completed", "json": completion, "usage": _usage(reply.json.get("usage"))}
    relay = Relay(keeps_usage=request.wants_usage, finish_reasons=finish)
    async with aclosing(await upstream.stream_chat(candidate, fields, 60, 60, for_org=ORG)) as chunks:
        try:
            passed = b"".join([relay.feed(chunk) async for chunk in chunks])
        except StreamBroken as problem:
            raise AttemptFailed(failure_in_body(candidate, problem.event)) from None
    usage = msgspec.to_builtins(relay.usage) if relay.usage else None
    events = passed.decode().removesuffix("\n\n").split("\n\n")
    return {"status": "completed" if relay.done else "failed", "events": events, "usage": _usage(usage)}


def _usage(content: Any) -> dict[str, Any] | None:
    if content is None:
        return None
    usage = msgspec.convert(content, Usage)
    learned = {"input": usage.input, "output": usage.output, "cached": usage.cached}
    return learned | ({} if usage.cost_usd is None else {"cost_usd": str(usage.cost_usd)})


async def _run_generation(
    upstream: Upstream, candidate: Candidate, content: Mapping[str, Any], script: ScriptedHttpClient
) -> Result:
    """Submit, then poll as the gateway does: a failed poll is not a failed job while the recording has more polls."""
    request, inputs = canonical_request(content, candidate.model)
    count = part_sizes(request.n, candidate.model.op.native_n)[0]
    result = await upstream.submit(candidate, request, count, inputs, own_id="att_1", for_org=ORG)
    if content.get("cancel"):
        taken = await upstream.cancel(candidate, result.ref)
        return Result(status="cancelled" if taken else result.status, upstream_id=result.upstream_id)
    ref = dict(result.ref)
    while not result.done:
        try:
            result = await upstream.poll(candidate, ref)
        except AttemptFailed:
            if not script.left:
                raise
        ref |= result.ref
    if result.status == "failed":
        raise AttemptFailed(Failure(result.failure_kind, result.message or ""))
    return result


def result_fields(upstream: Upstream, candidate: Candidate, result: Result) -> dict[str, Any]:
    plain: dict[str, Any] = {
        name: getattr(result, name)
        for name in ("status", "upstream_id", "message", "cost_usd", "progress", "poll_after_seconds")
    }
    plain["usage"], plain["ref"] = dict(result.usage), dict(result.ref)
    plain["files"] = [_file(upstream, candidate, file) for file in result.files]
    return plain


def _file(upstream: Upstream, candidate: Candidate, file: File) -> dict[str, Any]:
    has = {"content_type": file.content_type, "revised_prompt": file.revised_prompt, "data": bytes_to_base64(file.data)}
    if file.data is None:
        source = upstream.download_source(candidate, file)
        has |= {"url": source.url, "private": bool(source.headers) or None}
    return {name: value for name, value in has.items() if value is not None}
