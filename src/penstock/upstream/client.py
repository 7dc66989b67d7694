"""Send requests to providers and read their replies; all provider I/O goes through here."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import msgspec

from penstock.event_loop import LoopTurns
from penstock.net.client import HttpClient
from penstock.net.errors import MaybeSent, NotSent
from penstock.net.response import ByteStream
from penstock.providers.spec import (
    File,
    HttpRequest,
    ImageUpload,
    LocalServer,
    Model,
    Provider,
    Reply,
    Result,
)
from penstock.schema import Request
from penstock.settings import Settings
from penstock.telemetry.call_report import provider_wait
from penstock.telemetry.tracing import span, trace_headers
from penstock.upstream import local, replies, translate
from penstock.upstream.errors import AttemptFailed, OutcomeUnknown
from penstock.upstream.image_stream import ShowImage, send_streamed
from penstock.upstream.replies import MALFORMED, validated
from penstock.upstream.urls import absolute_url, is_within, same_origin
from penstock.values import InputImage

T = TypeVar("T")

_ERROR_BYTES_MAX = 64 * 1024
_POLL_TIMEOUT_SECONDS = 60
_LIST_TIMEOUT_SECONDS = 3
_CANCEL_TIMEOUT_SECONDS = 30
# Statuses of a proxy that got no response from the provider behind it: the provider may have accepted the job.
_PROXY_STATUSES = frozenset({408, 502, 504, 520, 524})
# Statuses of a request for the result of a finished job that mean: the job failed.
_FAILED_JOB_STATUSES = frozenset({400, 410, 413, 422, 500})


class Target(Protocol):
    """Where a request goes: the provider, the model and the credential. A Candidate is one."""

    @property
    def provider(self) -> Provider: ...
    @property
    def model(self) -> Model: ...
    @property
    def key(self) -> str: ...


@dataclass(frozen=True, slots=True)
class DownloadSource:
    """Where an output can be downloaded, and with which headers."""

    url: str
    headers: Mapping[str, str]
    trusted: bool  # on the provider's own origin, which the operator chose; for others the egress rules apply


class Upstream:
    """Submits, polls and cancels generations, and sends chat calls."""

    def __init__(self, http: HttpClient, local_servers: Mapping[str, LocalServer], settings: Settings) -> None:
        """Local servers are those of providers that answer inside this process, by the provider's slug."""
        self._http = http
        self._local_servers = local_servers
        self._settings = settings
        self._turns = LoopTurns()
        self.on_exchange: Callable[[Target, HttpRequest, Reply], None] = lambda *exchange: None  # told of every one

    # ---------------------------------------------------------------------------------------------------- generations

    async def submit(
        self,
        target: Target,
        request: Request,
        count: int,
        inputs: Mapping[str, Sequence[InputImage]],
        callback: str = "",
        *,
        for_org: str,
        show: ShowImage | None = None,
    ) -> Result:
        """Send a generation of an organization once. Unfinished images that it asks for are shown as they arrive.

        Raises AttemptFailed, or OutcomeUnknown if the provider may have accepted it.
        """
        provider, model = target.provider, target.model
        if model.op.image_upload:
            inputs = await self._upload_inputs(target, model.op.image_upload, inputs)
        values = {**translate.table_values(request, count, inputs), **translate.random_values()}
        fields = translate.provider_body(model, values, request.extras)
        try:
            if show and translate.streams(model, request):
                outgoing = translate.stream_request(provider, model, fields, request.partial_images, target.key)
                reply = await self._send_streamed(target, outgoing, show)
            else:
                outgoing = translate.http_request(provider, model, fields, target.key, callback)
                reply = await self._send(target, outgoing, self._settings.upstream_seconds, for_org)
        except (NotSent, MaybeSent) as problem:
            raise self._connection_error(provider, problem) from None
        result = self._read_submission(target, reply)
        if result.status == "failed":
            raise self.job_failure(target, result)
        if result.status == "completed" and not result.files:
            raise AttemptFailed(provider.slug, "unreadable", f"{provider.name} reported success without a file.")
        if not result.done and not result.ref:
            message = f"{provider.name} accepted the job without returning its id."
            raise OutcomeUnknown(provider.slug, message, timeout=False)
        return result

    async def _upload_inputs(
        self, target: Target, upload: ImageUpload, inputs: Mapping[str, Sequence[InputImage]]
    ) -> dict[str, list[InputImage]]:
        return {
            role: [await self._upload_input(target, upload, image) for image in images]
            for role, images in inputs.items()
        }

    async def _upload_input(self, target: Target, upload: ImageUpload, image: InputImage) -> InputImage:
        """Upload one image; returns it with the name that the provider gave it."""
        place = self._follow_up(target, upload.send, {})
        outgoing = HttpRequest(place.method, place.url, place.headers, form=upload.form(image))
        try:
            reply = await self._send(target, outgoing, self._settings.upstream_seconds)
        except (NotSent, MaybeSent):  # the image may have arrived, but no job was submitted
            message = f"{target.provider.name} did not accept an input image."
            raise AttemptFailed(target.provider.slug, "unsent", message, sent=False) from None
        return replace(image, name=self._read(target, reply, upload.read))

    async def poll(self, target: Target, ref: Mapping[str, str]) -> Result:
        """Ask for the state of a job. Raises AttemptFailed if the call failed; that says nothing about the job."""
        op = target.model.op
        assert op.poll, "only jobs are polled"
        with span("poll"):
            result = await self._poll_once(target, op.poll, ref)
        if result.status == "completed" and not result.files and op.fetch:
            with span("fetch"):
                result = await self._fetch_result(target, op.fetch, {**ref, **result.ref})
        if result.status == "completed" and not result.files:
            return Result(
                status="failed",
                failure_kind="unreadable",
                upstream_id=result.upstream_id,
                message=f"{target.provider.name} reported success without a file.",
            )
        return result

    async def _poll_once(self, target: Target, template: str, ref: Mapping[str, str]) -> Result:
        provider, op = target.provider, target.model.op
        body = op.poll_body(ref) if op.poll_body and template == op.poll else None
        try:
            reply = await self._send(target, self._follow_up(target, template, ref, body), _POLL_TIMEOUT_SECONDS)
        except (NotSent, MaybeSent) as problem:
            message = f"{provider.name} did not report the state of the job."
            raise AttemptFailed(provider.slug, "timeout", message) from problem
        return self._read_result(target, reply, op.read_poll or op.read)

    async def _fetch_result(self, target: Target, template: str, ref: Mapping[str, str]) -> Result:
        """Get the result of a finished job from its own URL. There, some HTTP errors mean that the job failed."""
        try:
            return await self._poll_once(target, template, ref)
        except AttemptFailed as problem:
            if problem.status in _FAILED_JOB_STATUSES:
                return Result(status="failed", failure_kind=problem.kind, message=problem.message)
            raise

    async def cancel(self, target: Target, ref: Mapping[str, str]) -> bool:
        """Ask the provider to cancel a job; False if it cannot, or did not confirm."""
        op = target.model.op
        body = op.cancel_body(ref) if op.cancel_body else None
        try:
            cancellations = [
                await self._send(target, self._follow_up(target, template, ref, body), _CANCEL_TIMEOUT_SECONDS)
                for template in op.cancels
            ]
        except (NotSent, MaybeSent, AttemptFailed):
            return False
        return bool(cancellations) and all(reply.status < 300 for reply in cancellations)

    def download_source(self, target: Target, file: File) -> DownloadSource:
        """Where to download an output. The provider's credential is sent only to the provider's own hosts."""
        url = absolute_url(target.provider.base_url, file.url or "")
        if not file.private:
            is_own = same_origin(url, target.provider.base_url)
            # A server of the operator's own may ask for its key wherever it serves from.
            key_headers = translate.request_headers(target.provider, target.key) if target.provider.self_hosted else {}
            return DownloadSource(url, key_headers if is_own else {}, trusted=is_own)
        self._check_host(target.provider, url)
        return DownloadSource(url, translate.request_headers(target.provider, target.key), trusted=True)

    # ----------------------------------------------------------------------------------------------------------- chat

    async def send_chat(self, target: Target, fields: Mapping[str, Any], seconds: float, *, for_org: str) -> Reply:
        """Send a chat call that is not streamed; cancelling this stops it. Raises AttemptFailed or OutcomeUnknown."""
        outgoing = translate.http_request(target.provider, target.model, fields, target.key)
        try:
            reply = await self._send(target, outgoing, seconds, for_org, interruptible=True)
        except (NotSent, MaybeSent) as problem:
            raise self._connection_error(target.provider, problem) from None
        if reply.status != 200:
            raise self._http_failure(target, reply)
        return reply

    async def stream_chat(
        self, target: Target, fields: Mapping[str, Any], idle_seconds: float, total_seconds: float, *, for_org: str
    ) -> ByteStream:
        """Start a streamed chat call as `send_chat`; the caller closes the stream. Reading it raises MaybeSent."""
        outgoing = self._traced(target, translate.http_request(target.provider, target.model, fields, target.key))
        if server := self._local_servers.get(target.provider.slug):
            return local.stream(server, outgoing, for_org)
        try:
            stream = self._http.stream(
                outgoing, read_timeout_seconds=idle_seconds, timeout_seconds=total_seconds, interruptible=True
            )
            with provider_wait():
                response = await stream.__aenter__()
        except (NotSent, MaybeSent) as problem:
            raise self._connection_error(target.provider, problem) from None
        if response.status == 200:
            return response
        async with aclosing(response):
            body = await response.read(_ERROR_BYTES_MAX)
        raise self._http_failure(target, Reply(response.status, response.headers, body))

    def failure_in_body(self, target: Target, body: bytes) -> AttemptFailed:
        """The failure for an error that came with status 200. A code from 400 to 599 in it is used as the status."""
        reply = Reply(200, {}, body)
        with suppress(*MALFORMED):
            code = reply.json["error"]["code"]
            return self._http_failure(target, replace(reply, status=code if code in range(400, 600) else 500))
        return self._http_failure(target, replace(reply, status=500))

    async def list_models(self, target: Target) -> list[str]:
        """The names of the models that an OpenAI-compatible server has. Raises AttemptFailed."""
        try:
            reply = await self._send(target, self._follow_up(target, "GET /v1/models", {}), _LIST_TIMEOUT_SECONDS)
        except (NotSent, MaybeSent) as problem:
            message = f"{target.provider.name} did not list its models."
            raise AttemptFailed(target.provider.slug, "unsent", message, sent=False) from problem
        names = self._read(target, reply, lambda reply: [model["id"] for model in reply.json["data"]])
        return [name for name in names if isinstance(name, str)]

    async def get_document(self, target: Target, base_url: str, url: str, *, seconds: float, max_bytes: int) -> Any:
        """GET a JSON document on the host of the provider's catalogue, without redirects. Raises AttemptFailed."""
        provider = target.provider
        address = absolute_url(base_url, url)
        if not same_origin(address, base_url):
            raise AttemptFailed(provider.slug, "broken", f"{provider.name} named a catalogue on another host.")
        outgoing = HttpRequest("GET", address, translate.request_headers(provider, target.key))
        try:
            reply = await self._http.send(outgoing, timeout_seconds=seconds, max_bytes=max_bytes)
        except (NotSent, MaybeSent) as problem:
            raise AttemptFailed(provider.slug, "unsent", "It did not answer.", sent=False) from problem
        await self._turns.wait_turn(len(reply.body))
        return self._read(target, reply, lambda reply: reply.json)

    # -------------------------------------------------------------------------------------------- sending and reading

    async def _send(
        self, target: Target, outgoing: HttpRequest, seconds: float, for_org: str = "", *, interruptible: bool = False
    ) -> Reply:
        """Send a request; `for_org` is for requests that start work, which a local server shares out."""
        with provider_wait():
            if server := self._local_servers.get(target.provider.slug):
                return await local.send(server, outgoing, for_org)
            traced = self._traced(target, outgoing)
            reply = await self._http.send(traced, timeout_seconds=seconds, interruptible=interruptible)
        self.on_exchange(target, outgoing, reply)
        await self._turns.wait_turn(len(reply.body))  # reading it will hold up the event loop
        return reply

    async def _send_streamed(self, target: Target, outgoing: HttpRequest, show: ShowImage) -> Reply:
        """Send a request for images whose response is a stream; return the response that it adds up to."""
        with provider_wait():
            seconds = self._settings.upstream_seconds
            reply = await send_streamed(self._http, self._traced(target, outgoing), seconds, self._turns, show)
        self.on_exchange(target, outgoing, reply)
        return reply

    def _traced(self, target: Target, outgoing: HttpRequest) -> HttpRequest:
        """The request with `traceparent`, if the settings say that this provider may see the ids of traces."""
        if target.provider.slug not in self._settings.traced_providers:
            return outgoing
        return msgspec.structs.replace(outgoing, headers={**outgoing.headers, **trace_headers()})

    def _follow_up(self, target: Target, template: str, ref: Mapping[str, str], body: Any = None) -> HttpRequest:
        """Build a request from the job's ref. Raises AttemptFailed if its URL is not on a host of the provider."""
        method, path = template.split(" ", 1)
        for name, value in ref.items():
            path = path.replace(f"{{{name}}}", value)
        url = absolute_url(target.provider.base_url, path.replace("{model}", target.model.upstream))
        self._check_host(target.provider, url)
        headers = translate.request_headers(target.provider, target.key)
        if body is None:
            return HttpRequest(method, url, headers)
        return HttpRequest(method, url, {**headers, "content-type": "application/json"}, msgspec.json.encode(body))

    @staticmethod
    def _check_host(provider: Provider, url: str) -> None:
        if not (same_origin(url, provider.base_url) or is_within(url, provider.domain)):
            message = f"{provider.name} returned a URL outside its own domain."
            raise AttemptFailed(provider.slug, "broken", message)

    def _read_submission(self, target: Target, reply: Reply) -> Result:
        """Read the reply to a submission. Raises OutcomeUnknown if it does not show whether a job was accepted."""
        provider, is_job = target.provider, target.model.op.poll is not None
        if is_job and reply.status in _PROXY_STATUSES and not replies.provider_message(provider, reply, target.key):
            message = f"{provider.name} responded with HTTP {reply.status}."
            raise OutcomeUnknown(provider.slug, message, timeout=False)
        try:
            return self._read_result(target, reply, target.model.op.read)
        except AttemptFailed as problem:
            if is_job and problem.kind == "unreadable":
                raise OutcomeUnknown(provider.slug, problem.message, timeout=False) from problem
            raise

    def _read_result(self, target: Target, reply: Reply, read: Callable[[Reply], Result]) -> Result:
        if reply.status >= 300 and target.model.op.read_http_errors:
            with suppress(*MALFORMED):
                return validated(read(reply))
        return self._read(target, reply, lambda reply: validated(read(reply)))

    def _read(self, target: Target, reply: Reply, read: Callable[[Reply], T]) -> T:
        """Apply a reading function of the provider file. Raises AttemptFailed for HTTP errors and malformed replies."""
        if reply.status >= 300:
            raise self._http_failure(target, reply)
        try:
            return read(reply)
        except MALFORMED as problem:
            message = f"{target.provider.name} returned a malformed response."
            raise AttemptFailed(target.provider.slug, "unreadable", message) from problem

    # ------------------------------------------------------------------------------------------------------- failures

    @staticmethod
    def _connection_error(provider: Provider, problem: NotSent | MaybeSent) -> AttemptFailed | OutcomeUnknown:
        if isinstance(problem, NotSent):
            return AttemptFailed(provider.slug, "unsent", f"{provider.name} could not be reached.", sent=False)
        ending = "did not respond in time" if problem.timeout else "closed the connection without a response"
        return OutcomeUnknown(provider.slug, f"{provider.name} {ending}.", timeout=problem.timeout)

    @staticmethod
    def _http_failure(target: Target, reply: Reply) -> AttemptFailed:
        return AttemptFailed(
            target.provider.slug,
            replies.failure_kind(target.provider, reply),
            replies.failure_message(target.provider, reply, target.key),
            status=reply.status,
            retry_after_seconds=replies.retry_after_seconds(reply),
            words=replies.provider_message(target.provider, reply, target.key),
        )

    @staticmethod
    def job_failure(target: Target, result: Result) -> AttemptFailed:
        """The failure for a job that the provider reports as failed."""
        reason = replies.sanitize(result.message, target.key)
        message = reason or f"{target.provider.name} gave no reason for the failure."
        return AttemptFailed(target.provider.slug, result.failure_kind, message, cost_usd=result.cost_usd)
