"""Send requests to providers and read their replies; all provider I/O goes through here."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from functools import partial
from typing import Any, TypeVar

import msgspec

from penstock.event_loop import LONG_BYTES, LoopTurns, run_aside
from penstock.net.checked_urls import egress_rules
from penstock.net.client import HttpClient
from penstock.net.errors import MaybeSent, NotSent
from penstock.net.response import ByteStream
from penstock.providers.spec import (
    File,
    HttpRequest,
    LocalServer,
    NotSigned,
    Provider,
    Reply,
    Result,
)
from penstock.schema import Request
from penstock.settings import Settings
from penstock.telemetry.call_report import provider_wait
from penstock.telemetry.tracing import span, trace_headers
from penstock.upstream import local, replies, translate
from penstock.upstream.candidate import Candidate
from penstock.upstream.failures import (
    AttemptFailed,
    Failure,
    connection_failure,
    http_failure,
    job_failure,
    unknown_outcome,
)
from penstock.upstream.image_stream import ShowImage, send_streamed
from penstock.upstream.replies import (
    MALFORMED,
    failed_without_files,
    validated,
    with_accepted_cost,
    with_plausible_cost,
    without_leaked_key,
)
from penstock.upstream.uploads import Uploads, put_file
from penstock.upstream.urls import DownloadSource, absolute_url, is_within, request_url, same_origin
from penstock.values import InputFile, OrgId

T = TypeVar("T")

_ERROR_BYTES_MAX = 64 * 1024
_POLL_TIMEOUT_SECONDS = 60
_CANCEL_TIMEOUT_SECONDS = 30
# Statuses of a proxy that got no response from the provider behind it: the provider may have accepted the job.
_PROXY_STATUSES = frozenset({408, 502, 504, 520, 524})
_FAILED_JOB_STATUSES = frozenset({400, 410, 413, 422, 500})  # of a request for the result of a finished job


class Upstream:
    """Submits, polls and cancels generations, and sends chat calls."""

    def __init__(self, http: HttpClient, local_servers: Mapping[str, LocalServer], settings: Settings) -> None:
        """Local servers are those of providers that answer inside this process, by the provider's slug."""
        self._http = http
        self._local_servers = local_servers
        self._settings = settings
        self._turns = LoopTurns()
        self.on_exchange: Callable[[Candidate, HttpRequest, Reply], None] | None = None  # called after each one

    # ---------------------------------------------------------------------------------------------------- generations

    async def submit(
        self,
        candidate: Candidate,
        request: Request,
        count: int,
        inputs: Mapping[str, Sequence[InputFile]],
        callback: str = "",
        *,
        own_id: str = "",
        for_org: OrgId,
        show: ShowImage | None = None,
    ) -> Result:
        """Send a generation of an organization once. Unfinished images that it asks for are shown as they arrive.

        `own_id` is for providers who find a job also by an id of ours; see `find`. Raises AttemptFailed, with an
        unknown outcome if the provider may have accepted it.
        """
        provider, model, key = candidate.provider, candidate.model, candidate.key
        if model.op.image_upload:
            inputs = await self._uploads(candidate).upload_images(model.op.image_upload, inputs)
        is_streamed = show is not None and translate.streams(model, request)
        size_bytes = sum(len(image.data) for images in inputs.values() for image in images)
        own = {"own_id": own_id} if own_id else {}
        values = {**translate.table_values(request, count, inputs), **translate.random_values(model), **own}

        def build() -> HttpRequest:
            fields = translate.provider_body(model, values, request.extras)
            if is_streamed:
                return translate.stream_request(provider, model, fields, request, key, size_bytes)
            return translate.http_request(provider, model, fields, key, callback, size_bytes)

        outgoing = await (_build_signed(provider, build) if provider.sign else run_aside(size_bytes, build))
        try:
            if show and is_streamed:
                reply = await self._send_streamed(candidate, outgoing, show)
            else:
                reply = await self._send(candidate, outgoing, self._settings.upstream_seconds, for_org)
        except (NotSent, MaybeSent) as problem:
            raise AttemptFailed(connection_failure(provider, problem)) from None
        result = failed_without_files(candidate, self._read_submission(candidate, reply))
        if result.status == "failed":
            raise AttemptFailed(job_failure(candidate, result))
        if not result.done and not result.ref:
            raise AttemptFailed(unknown_outcome(f"{provider.name} accepted the job without returning its id."))
        if model.op.video_upload:
            put = partial(self._put_file, candidate)
            cancel = partial(self.cancel, candidate, result.ref)
            await self._uploads(candidate).start_with_video(model.op.video_upload, result.ref, inputs, put, cancel)
        return result

    def _uploads(self, candidate: Candidate) -> Uploads:
        return Uploads(candidate, partial(self.exchange, candidate))

    async def exchange(
        self,
        candidate: Candidate,
        template: str,
        ref: Mapping[str, str],
        read: Callable[[Reply], T],
        *,
        form: Any = (),
        body: Any = None,
    ) -> T:
        """Send a request beside the usual ones. Raises NotSent, MaybeSent and AttemptFailed."""
        outgoing = msgspec.structs.replace(self._follow_up(candidate, template, ref, body), form=form)
        return self._read(candidate, await self._send(candidate, outgoing, self._settings.upstream_seconds), read)

    async def _put_file(self, candidate: Candidate, url: str, file: InputFile) -> str:
        """PUT a file to a URL that the provider named; return its ETag."""
        egress, seconds = egress_rules(self._settings), self._settings.upstream_seconds
        reply = await put_file(self._http, candidate.provider.base_url, url, file, egress=egress, seconds=seconds)
        return self._read(candidate, reply, lambda reply: reply.headers.get("etag", ""))

    async def poll(self, candidate: Candidate, ref: Mapping[str, str]) -> Result:
        """Ask for the state of a job. Raises AttemptFailed if the call failed; that says nothing about the job."""
        op = candidate.model.op
        assert op.poll, "only jobs are polled"
        with span("poll"):
            result = await self._poll_once(candidate, op.poll, ref)
        if result.status == "completed" and not result.files and op.fetch:
            with span("fetch"):
                result = await self._fetch_result(candidate, op.fetch, {**ref, **result.ref}, result)
        return with_plausible_cost(candidate, failed_without_files(candidate, with_accepted_cost(result, ref)))

    async def find(self, candidate: Candidate, own_id: str) -> Result:
        """Ask for a job by the id of ours that was sent with it. Raises AttemptFailed if it was not found."""
        assert candidate.model.op.finds_own_ids, "only some providers do"
        result = await self.poll(candidate, {"id": own_id})
        if not result.ref:  # an error that the provider reports as a result
            raise AttemptFailed(Failure("rejected", f"{candidate.provider.name} does not know the job."))
        return result

    async def _poll_once(self, candidate: Candidate, template: str, ref: Mapping[str, str]) -> Result:
        provider, op = candidate.provider, candidate.model.op
        body = op.poll_body(ref) if op.poll_body and template == op.poll else None
        outgoing = self._follow_up(candidate, template, ref, body)
        try:
            reply = await self._send(candidate, outgoing, _POLL_TIMEOUT_SECONDS)
        except (NotSent, MaybeSent) as problem:
            raise AttemptFailed(Failure("timeout", f"{provider.name} did not report on the job.")) from problem
        return self._read_result(candidate, reply, op.read_poll or op.read)

    async def _fetch_result(
        self, candidate: Candidate, template: str, ref: Mapping[str, str], finished: Result
    ) -> Result:
        """Get the result of a finished job from its own URL. There, some HTTP errors mean that the job failed."""
        try:
            return await self._poll_once(candidate, template, ref)
        except AttemptFailed as problem:
            failure = problem.failure
            if failure.status in _FAILED_JOB_STATUSES:
                return msgspec.structs.replace(
                    finished, status="failed", failure_kind=failure.kind, message=failure.message
                )
            raise

    async def cancel(self, candidate: Candidate, ref: Mapping[str, str]) -> bool:
        """Ask the provider to cancel a job; False if it cannot, or did not confirm."""
        op = candidate.model.op
        body = op.cancel_body(ref) if op.cancel_body else None
        try:
            cancellations = [
                await self._send(candidate, self._follow_up(candidate, template, ref, body), _CANCEL_TIMEOUT_SECONDS)
                for template in op.cancels
            ]
        except (NotSent, MaybeSent, AttemptFailed):
            return False
        return bool(cancellations) and all(reply.status < 300 for reply in cancellations)

    def download_source(self, candidate: Candidate, file: File) -> DownloadSource:
        """Where to download an output. The provider's credential is sent only to the provider's own hosts."""
        url = request_url(candidate.provider.base_url, file.url or "", candidate.provider.query)
        if not file.private:
            is_own = same_origin(url, candidate.provider.base_url)
            # A server of the operator's own may ask for its key wherever it serves from.
            key_headers = (
                translate.request_headers(candidate.provider, candidate.key) if candidate.provider.self_hosted else {}
            )
            return DownloadSource(url, key_headers if is_own else {}, trusted=is_own)
        self._check_host(candidate.provider, url)
        return DownloadSource(url, translate.request_headers(candidate.provider, candidate.key), trusted=True)

    # ----------------------------------------------------------------------------------------------------------- chat

    async def send_chat(
        self, candidate: Candidate, fields: Mapping[str, Any], seconds: float, *, for_org: OrgId, size_bytes: int = 0
    ) -> Reply:
        """Send a chat call that is not streamed; cancelling this stops it. Raises AttemptFailed."""
        outgoing = _short_chat_request(candidate, fields, size_bytes)
        if outgoing is None:
            outgoing = await _long_chat_request(candidate, fields, size_bytes)
        try:
            reply = await self._send(candidate, outgoing, seconds, for_org)
        except (NotSent, MaybeSent) as problem:
            raise AttemptFailed(connection_failure(candidate.provider, problem)) from None
        if reply.status != 200:
            raise AttemptFailed(http_failure(candidate, reply))
        return reply

    async def stream_chat(
        self,
        candidate: Candidate,
        fields: Mapping[str, Any],
        idle_seconds: float,
        total_seconds: float,
        *,
        for_org: OrgId,
        size_bytes: int = 0,
    ) -> ByteStream:
        """Start a streamed chat call as `send_chat`; the caller closes the stream. Reading it raises MaybeSent."""
        outgoing = _short_chat_request(candidate, fields, size_bytes)
        if outgoing is None:
            outgoing = await _long_chat_request(candidate, fields, size_bytes)
        outgoing = self._traced(candidate, outgoing)
        if server := self._local_servers.get(candidate.provider.slug):
            return local.stream(server, outgoing, for_org)
        try:
            stream = self._http.stream(outgoing, read_timeout_seconds=idle_seconds, timeout_seconds=total_seconds)
            with provider_wait():
                response = await stream.__aenter__()
        except (NotSent, MaybeSent) as problem:
            raise AttemptFailed(connection_failure(candidate.provider, problem)) from None
        candidate.note_headers(response.headers)
        if response.status == 200:
            return response
        async with aclosing(response):
            body = await response.read(_ERROR_BYTES_MAX)
        raise AttemptFailed(http_failure(candidate, Reply(response.status, response.headers, body)))

    async def read_list(
        self, candidate: Candidate, template: str, read: Callable[[Any], T], body: Any = None, *, seconds: float
    ) -> T:
        """Read a list that a provider has, such as that of its models. Raises AttemptFailed."""
        try:
            reply = await self._send(candidate, self._follow_up(candidate, template, {}, body), seconds)
        except (NotSent, MaybeSent) as problem:
            message = f"{candidate.provider.name} did not answer."
            raise AttemptFailed(Failure("unsent", message, sent=False)) from problem
        return self._read(candidate, reply, lambda reply: read(reply.json))

    async def get_document(
        self, candidate: Candidate, base_url: str, url: str, *, seconds: float, max_bytes: int
    ) -> Any:
        """GET a JSON document on the host of the provider's catalogue, without redirects. Raises AttemptFailed."""
        provider = candidate.provider
        absolute = absolute_url(base_url, url)
        if not same_origin(absolute, base_url):
            raise AttemptFailed(Failure("broken", f"{provider.name} named a catalogue on another host."))
        outgoing = HttpRequest("GET", absolute, translate.request_headers(provider, candidate.key))
        try:
            reply = await self._http.send(outgoing, timeout_seconds=seconds, max_bytes=max_bytes)
        except (NotSent, MaybeSent) as problem:
            raise AttemptFailed(Failure("unsent", "It did not answer.", sent=False)) from problem
        await self._turns.wait_turn(len(reply.body))
        return self._read(candidate, reply, lambda reply: msgspec.json.decode(reply.body))

    # -------------------------------------------------------------------------------------------- sending and reading

    async def _send(
        self,
        candidate: Candidate,
        outgoing: HttpRequest,
        seconds: float,
        for_org: OrgId | None = None,
    ) -> Reply:
        """Send a request; `for_org` is for requests that start work, which a local server shares out."""
        with provider_wait():
            if server := self._local_servers.get(candidate.provider.slug):
                return await local.send(server, outgoing, for_org)
            traced = self._traced(candidate, outgoing) if self._settings.traced_providers else outgoing
            reply = await self._http.send(traced, timeout_seconds=seconds)
        candidate.note_headers(reply.headers)
        if self.on_exchange is not None:
            self.on_exchange(candidate, outgoing, reply)
        if candidate.model.op.task != "chat":  # of a large chat only the outline is decoded
            await run_aside(len(reply.body), reply.decode)
        if len(reply.body) > LONG_BYTES:
            await self._turns.wait_turn(len(reply.body))  # reading it will hold up the event loop
        return reply

    async def _send_streamed(self, candidate: Candidate, outgoing: HttpRequest, show: ShowImage) -> Reply:
        """Send a request for images whose response is a stream; return the response that it adds up to."""
        with provider_wait():
            seconds = self._settings.upstream_seconds
            reply = await send_streamed(self._http, self._traced(candidate, outgoing), seconds, self._turns, show)
        if self.on_exchange is not None:
            self.on_exchange(candidate, outgoing, reply)
        return reply

    def _traced(self, candidate: Candidate, outgoing: HttpRequest) -> HttpRequest:
        """The request with `traceparent`, if the settings say that this provider may see the ids of traces."""
        if candidate.provider.slug not in self._settings.traced_providers:
            return outgoing
        return msgspec.structs.replace(outgoing, headers={**outgoing.headers, **trace_headers()})

    def _follow_up(self, candidate: Candidate, template: str, ref: Mapping[str, str], body: Any = None) -> HttpRequest:
        """Build a request from the job's ref. Raises AttemptFailed if its URL is not on a host of the provider."""
        method, path = template.split(" ", 1)
        for name, value in ref.items():
            path = path.replace(f"{{{name}}}", value)
        path = path.replace("{model}", candidate.model.upstream)
        url = request_url(candidate.provider.base_url, path, candidate.provider.query)
        self._check_host(candidate.provider, url)
        headers = translate.request_headers(candidate.provider, candidate.key)
        outgoing = HttpRequest(method, url, headers)
        if body is not None:
            headers["content-type"] = "application/json"
            outgoing = HttpRequest(method, url, headers, msgspec.json.encode(body))
        return translate.signed(candidate.provider, outgoing, candidate.key)

    @staticmethod
    def _check_host(provider: Provider, url: str) -> None:
        if not (same_origin(url, provider.base_url) or is_within(url, provider.domain)):
            raise AttemptFailed(Failure("broken", f"{provider.name} returned a URL outside its own domain."))

    def _read_submission(self, candidate: Candidate, reply: Reply) -> Result:
        """Read the reply to a submission. The outcome is unknown if it does not show whether a job was accepted."""
        provider, is_job = candidate.provider, candidate.model.op.poll is not None
        if is_job and reply.status in _PROXY_STATUSES and not replies.provider_message(provider, reply, candidate.key):
            raise AttemptFailed(unknown_outcome(f"{provider.name} responded with HTTP {reply.status}."))
        try:
            return self._read_result(candidate, reply, candidate.model.op.read)
        except AttemptFailed as problem:
            if is_job and problem.failure.kind == "unreadable":
                raise AttemptFailed(unknown_outcome(problem.failure.message)) from problem
            raise

    def _read_result(self, candidate: Candidate, reply: Reply, read: Callable[[Reply], Result]) -> Result:
        if reply.status >= 300 and candidate.model.op.read_http_errors:
            with suppress(*MALFORMED):
                return without_leaked_key(candidate, with_plausible_cost(candidate, validated(read(reply))))
        result = self._read(candidate, reply, lambda reply: validated(read(reply)))
        return without_leaked_key(candidate, with_plausible_cost(candidate, result))

    def _read(self, candidate: Candidate, reply: Reply, read: Callable[[Reply], T]) -> T:
        """Apply a reading function of the provider file. Raises AttemptFailed for HTTP errors and malformed replies."""
        if reply.status >= 300:
            raise AttemptFailed(http_failure(candidate, reply))
        try:
            return read(reply)
        except MALFORMED as problem:
            message = f"{candidate.provider.name} returned a malformed response."
            raise AttemptFailed(Failure("unreadable", message)) from problem


def _short_chat_request(candidate: Candidate, fields: Mapping[str, Any], size_bytes: int) -> HttpRequest | None:
    """The request for a chat call; None if it is long, or needs headers of its own."""
    target = candidate.target
    if target is None or size_bytes > LONG_BYTES:
        return None
    return HttpRequest(target.method, target.url, target.headers, msgspec.json.encode(fields))


async def _long_chat_request(candidate: Candidate, fields: Mapping[str, Any], size_bytes: int) -> HttpRequest:
    build = partial(translate.http_request, size_bytes=size_bytes)
    return await run_aside(size_bytes, build, candidate.provider, candidate.model, fields, candidate.key)


async def _build_signed(provider: Provider, build: Callable[[], HttpRequest]) -> HttpRequest:
    """Build a request whose signing may wait for a credential. Raises AttemptFailed if there is none."""
    try:
        return await asyncio.to_thread(build)
    except NotSigned as problem:
        message = f"The request to {provider.name} cannot be signed: the gateway has no credential for it."
        raise AttemptFailed(Failure("unsent", message, sent=False, words=str(problem))) from None
