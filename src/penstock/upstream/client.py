"""Carry a request to a provider and bring back a result; the only provider I/O."""

import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Protocol, TypeVar
from urllib.parse import urljoin, urlsplit

import msgspec

from penstock.event_loop import Turns
from penstock.net.client import HttpClient
from penstock.net.errors import MaybeSent, NotSent
from penstock.net.response import ByteStream
from penstock.providers import spec
from penstock.providers.spec import FailureKind, File, HttpRequest, LocalServer, Model, Provider, Reply, Result
from penstock.schema import Request
from penstock.settings import Settings
from penstock.upstream import translate
from penstock.values import InputImage

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_SECRETS = re.compile(r"\b(?:sk|pk|key|rk|r8|whsec|Bearer)[-_ ][A-Za-z0-9_\-.]{8,}")
_LONGEST_MESSAGE = 500
_MOST_ERROR_BYTES = 64 * 1024
_LONGEST_RETRY_AFTER_SECONDS = 120.0
# Said by whoever stands in front of a provider and did not hear its answer.
_NO_VERDICT = frozenset({408, 502, 504, 520, 524})
_NO_RESULT = frozenset({400, 410, 413, 422, 500})  # asked for the result of a finished job: how it failed
_ABSURD = 1_000_000_000  # dollars, seconds, tokens: nothing that is meant is that large
Told = TypeVar("Told")
_UNREADABLE = (KeyError, TypeError, IndexError, ValueError, AttributeError, msgspec.DecodeError, RecursionError)


class AttemptFailed(Exception):
    """A provider's definite no, or proof that it never heard of us: somebody else may be asked."""

    def __init__(
        self,
        provider: str,
        kind: FailureKind,
        message: str,
        *,
        status: int | None = None,  # of the HTTP answer, where that was the failure
        sent: bool = True,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(message)
        self.provider, self.kind, self.message = provider, kind, message
        self.status, self.sent, self.retry_after_seconds = status, sent, retry_after_seconds


class OutcomeUnknown(Exception):
    """Something was sent and no verdict came back: nobody may be asked again."""

    def __init__(self, provider: str, message: str, *, timeout: bool) -> None:
        super().__init__(message)
        self.provider, self.message, self.timeout = provider, message, timeout


class Target(Protocol):
    """What a call needs to know of an option: who, which model, with which credential."""

    @property
    def provider(self) -> Provider: ...
    @property
    def model(self) -> Model: ...
    @property
    def key(self) -> str: ...


@dataclass(frozen=True, slots=True)
class DownloadSource:
    """Where a produced file can be fetched, and what must be shown there."""

    url: str
    headers: Mapping[str, str]
    trusted: bool  # on the provider's own origin, which the operator chose; anything else is guarded


class Upstream:
    """Every call to every provider goes through here."""

    def __init__(self, wire: HttpClient, local_servers: Mapping[str, LocalServer], settings: Settings) -> None:
        """Local servers are those of providers that answer inside this process, by the provider's slug."""
        self._wire = wire
        self._local_servers = local_servers
        self._settings = settings
        self._turns = Turns()

    async def submit(
        self,
        target: Target,
        request: Request,
        count: int,
        inputs: Mapping[str, Sequence[InputImage]],
        callback: str = "",
    ) -> Result:
        """Send a generation once. Raises Failed, or OutcomeUnknown when it may have been heard."""
        provider, model = target.provider, target.model
        if model.op.image_upload:
            inputs = await self._deposited(target, model.op.image_upload, inputs)
        values = translate.canonical(request, count, inputs)
        values["chance"] = secrets.randbits(32)  # for models whose luck is in what they are told
        fields = translate.body(model, values, request.extras)
        try:
            outgoing = translate.outgoing(provider, model, fields, target.key, callback)
            reply = await self._send(target, outgoing, self._settings.upstream_seconds)
        except (NotSent, MaybeSent) as problem:
            raise self._silence(provider, problem) from None
        result = self._received(target, reply)
        if result.status == "failed":
            raise self._verdict(target, result)
        if result.status == "completed" and not result.files:
            raise AttemptFailed(provider.slug, "unreadable", f"{provider.name} reported success without a file.")
        if not result.done and not result.ref:
            raise OutcomeUnknown(provider.slug, f"{provider.name} accepted without naming the job.", timeout=False)
        return result

    async def _deposited(
        self, target: Target, deposit: spec.ImageUpload, inputs: Mapping[str, Sequence[InputImage]]
    ) -> dict[str, list[InputImage]]:
        return {role: [await self._left(target, deposit, one) for one in found] for role, found in inputs.items()}

    async def _left(self, target: Target, deposit: spec.ImageUpload, reference: InputImage) -> InputImage:
        place = self._address(target, deposit.send, {})
        outgoing = HttpRequest(place.method, place.url, place.headers, form=deposit.form(reference))
        try:
            reply = await self._send(target, outgoing, self._settings.upstream_seconds)
        except (NotSent, MaybeSent):  # whatever became of the picture, no job was begun
            words = f"{target.provider.name} did not take a picture."
            raise AttemptFailed(target.provider.slug, "broken", words, sent=False) from None
        return replace(reference, name=self._understood(target, reply, deposit.read))

    async def ask(self, target: Target, fields: Mapping[str, Any], seconds: float) -> Reply:
        """A chat call whose answer comes in one piece, handed on as it is."""
        outgoing = translate.outgoing(target.provider, target.model, fields, target.key)
        try:
            reply = await self._send(target, outgoing, seconds)
        except (NotSent, MaybeSent) as problem:
            raise self._silence(target.provider, problem) from None
        if reply.status != 200:
            raise self._refusal(target, reply)
        return reply

    async def listen(
        self, target: Target, fields: Mapping[str, Any], idle_seconds: float, total_seconds: float
    ) -> ByteStream:
        """Start a streamed chat call, for the caller to close. Raises as `ask` does, and MaybeSent while it is read."""
        outgoing = translate.outgoing(target.provider, target.model, fields, target.key)
        if server := self._local_servers.get(target.provider.slug):
            return server.stream(outgoing)
        try:
            stream = self._wire.stream(outgoing, read_timeout_seconds=idle_seconds, timeout_seconds=total_seconds)
            reply = await stream.__aenter__()
        except (NotSent, MaybeSent) as problem:
            raise self._silence(target.provider, problem) from None
        if reply.status == 200:
            return reply
        async with aclosing(reply):
            body = await reply.read(_MOST_ERROR_BYTES)
        raise self._refusal(target, Reply(reply.status, reply.headers, body))

    @staticmethod
    def _silence(provider: Provider, problem: NotSent | MaybeSent) -> "AttemptFailed | OutcomeUnknown":
        if isinstance(problem, NotSent):
            return AttemptFailed(provider.slug, "broken", f"{provider.name} could not be reached.", sent=False)
        words = "did not answer in time" if problem.timeout else "broke off before answering"
        return OutcomeUnknown(provider.slug, f"{provider.name} {words}.", timeout=problem.timeout)

    def objection(self, target: Target, body: bytes) -> AttemptFailed:
        """An error that came under a status of success. Its own code, where it is one of HTTP's, is what was meant."""
        said = Reply(200, {}, body)
        with suppress(*_UNREADABLE):
            code = said.json["error"]["code"]
            return self._refusal(target, replace(said, status=code if code in range(400, 600) else 500))
        return self._refusal(target, replace(said, status=500))

    def _refusal(self, target: Target, reply: Reply) -> AttemptFailed:
        return AttemptFailed(
            target.provider.slug,
            kind_of(target.provider, reply),
            explain(target.provider, reply, target.key),
            status=reply.status,
            retry_after_seconds=retry_after(reply),
        )

    async def poll(self, target: Target, ref: Mapping[str, str]) -> Result:
        """The job's present state. Raises Failed for whatever went wrong with asking; the job itself goes on."""
        op = target.model.op
        assert op.poll, "only jobs are polled"
        result = await self._follow(target, op.poll, ref)
        if result.status == "completed" and not result.files and op.fetch:
            result = await self._fetched(target, op.fetch, {**ref, **result.ref})
        if result.status == "completed" and not result.files:
            return Result(
                status="failed",
                failure_kind="unreadable",
                upstream_id=result.upstream_id,
                message=f"{target.provider.name} reported success without a file.",
            )
        return result

    async def cancel(self, target: Target, ref: Mapping[str, str]) -> bool:
        """Ask for the end of a job; False when the provider has no way to, or did not take it."""
        op = target.model.op
        body = op.cancel_body(ref) if op.cancel_body else None
        try:
            replies = [await self._send(target, self._address(target, one, ref, body), 30) for one in op.cancels]
        except (NotSent, MaybeSent, AttemptFailed):
            return False
        return bool(replies) and all(reply.status < 300 for reply in replies)

    def source(self, target: Target, file: File) -> DownloadSource:
        """A file's address; credentials go along only to the provider's own origin."""
        url = _under(target.provider.base_url, file.url or "")
        if not file.private:
            return DownloadSource(url, {}, trusted=_same_origin(url, target.provider.base_url))
        self._check_origin(target.provider, url)
        return DownloadSource(url, {**target.provider.headers, **target.provider.auth(target.key)}, trusted=True)

    # ------------------------------------------------------------------------------------------------------- plumbing

    async def _send(self, target: Target, outgoing: HttpRequest, seconds: float) -> Reply:
        if server := self._local_servers.get(target.provider.slug):
            return await server.send(outgoing)
        reply = await self._wire.send(outgoing, timeout_seconds=seconds)
        await self._turns.take(len(reply.body))  # it will be read at once
        return reply

    async def _follow(self, target: Target, template: str, ref: Mapping[str, str]) -> Result:
        slug, name, op = target.provider.slug, target.provider.name, target.model.op
        body = op.poll_body(ref) if op.poll_body and template == op.poll else None
        try:
            reply = await self._send(target, self._address(target, template, ref, body), 60)
        except (NotSent, MaybeSent) as problem:
            raise AttemptFailed(slug, "timeout", f"{name} did not say how the job is.") from problem
        return self._read(target, reply, op.read_poll)

    async def _fetched(self, target: Target, template: str, ref: Mapping[str, str]) -> Result:
        """What a finished job came to. Where that lives apart, it is also where a failure is told, as an HTTP error;
        errors on the way there are none of it, and neither is trouble with our credential.
        """
        try:
            return await self._follow(target, template, ref)
        except AttemptFailed as problem:
            if problem.status in _NO_RESULT:
                return Result(status="failed", failure_kind=problem.kind, message=problem.message)
            raise

    def _address(self, target: Target, template: str, ref: Mapping[str, str], body: Any = None) -> HttpRequest:
        """Build a request from the job's ref. Raises AttemptFailed if its URL is not on a host of the provider."""
        method, path = template.split(" ", 1)
        for name, value in ref.items():
            path = path.replace(f"{{{name}}}", value)
        url = _under(target.provider.base_url, path.replace("{model}", target.model.upstream))
        self._check_origin(target.provider, url)
        headers = {**target.provider.headers, **target.provider.auth(target.key)}
        if body is None:
            return HttpRequest(method, url, headers)
        return HttpRequest(method, url, {**headers, "content-type": "application/json"}, msgspec.json.encode(body))

    @staticmethod
    def _check_origin(provider: Provider, url: str) -> None:
        if not (_same_origin(url, provider.base_url) or _is_within(url, provider.domain)):
            raise AttemptFailed(provider.slug, "broken", f"{provider.name} pointed outside its own address.")

    def _received(self, target: Target, reply: Reply) -> Result:
        """The answer to a submission. One that does not tell whether a job was begun must not begin another."""
        provider, is_job = target.provider, target.model.op.poll is not None
        if is_job and reply.status in _NO_VERDICT and not words_of(provider, reply, target.key):
            raise OutcomeUnknown(provider.slug, f"{provider.name} answered {reply.status}.", timeout=False)
        try:
            return self._read(target, reply)
        except AttemptFailed as problem:
            if is_job and problem.kind == "unreadable":
                raise OutcomeUnknown(provider.slug, problem.message, timeout=False) from problem
            raise

    def _read(self, target: Target, reply: Reply, reader: Callable[[Reply], Result] | None = None) -> Result:
        op = target.model.op
        read = reader or op.read
        if reply.status >= 300 and op.read_http_errors:
            with suppress(*_UNREADABLE):
                return sound(read(reply))
        return self._understood(target, reply, lambda reply: sound(read(reply)))

    def _understood(self, target: Target, reply: Reply, read: Callable[[Reply], Told]) -> Told:
        if reply.status >= 300:
            raise self._refusal(target, reply)
        try:
            return read(reply)
        except _UNREADABLE as problem:
            words = f"{target.provider.name} gave an answer that makes no sense."
            raise AttemptFailed(target.provider.slug, "unreadable", words) from problem

    def _verdict(self, target: Target, result: Result) -> AttemptFailed:
        message = clean(result.message, target.key) or f"{target.provider.name} failed to make it."
        return AttemptFailed(target.provider.slug, result.failure_kind, message)


def _same_origin(url: str, base_url: str) -> bool:
    return urlsplit(url)[:2] == urlsplit(base_url)[:2]


def _is_within(url: str, domain: str | None) -> bool:
    """On a host of the domain, by https and its usual port, written so that no two readers can differ."""
    return domain is not None and re.match(rf"https://([a-z0-9-]+\.)*{re.escape(domain)}/", url) is not None


def _under(base_url: str, path: str) -> str:
    """Relative paths extend the base address, which may have a path of its own; whole addresses stay."""
    if urlsplit(path).scheme:
        return path
    return base_url.rstrip("/") + "/" + path.lstrip("/") if path.startswith("/") else urljoin(base_url + "/", path)


def sound(result: Result) -> Result:
    """Tables read answers without asking what is in them. What cannot be worked with is a TypeError or ValueError;
    figures and words that make no sense are left out.
    """
    names = (*result.ref.values(), *(one for one in (result.upstream_id,) if one is not None))
    if not all(isinstance(name, str) for name in names):
        raise TypeError("a job's name is no text")
    usage = {name: count for name, count in result.usage.items() if _is_amount(count)}
    return replace(
        result,
        files=tuple(_sound_file(file) for file in result.files),
        message=result.message if isinstance(result.message, str) else None,
        progress=result.progress if _is_amount(result.progress) else None,
        poll_after_seconds=result.poll_after_seconds if _is_amount(result.poll_after_seconds) else None,
        cost_usd=result.cost_usd if _is_price(result.cost_usd) else None,
        usage=usage,
    )


def _sound_file(file: File) -> File:
    data: Any = file.data
    url: Any = file.url
    if not isinstance(url if data is None else data, bytes | str) or not isinstance(url, str | None):
        raise TypeError("a file is neither bytes nor an address")
    urlsplit(file.url or "")
    return file if isinstance(file.revised_prompt, str) else replace(file, revised_prompt=None)


def _is_amount(value: Any) -> bool:
    return isinstance(value, int | float) and 0 <= value < _ABSURD


def _is_price(usd: Any) -> bool:
    try:
        return usd is not None and 0 <= Decimal(usd) < _ABSURD
    except (ArithmeticError, TypeError, ValueError):
        return False


def kind_of(provider: Provider, reply: Reply) -> FailureKind:
    """What a status means for routing; the provider's own word goes first where it has one."""
    with suppress(*_UNREADABLE):
        if provider.failure_kind and (kind := provider.failure_kind(reply)):
            return kind
    if reply.status == 429:
        return "busy"
    # Bad credentials and unpaid bills are the operator's trouble: for a caller, this provider is simply down.
    if reply.status in (401, 402, 403) or reply.status >= 500 or reply.status < 400:
        return "broken"
    return "rejected"


def explain(provider: Provider, reply: Reply, key: str = "") -> str:
    if reply.status in (401, 402, 403) and kind_of(provider, reply) == "broken":
        return f"{provider.name} did not accept the gateway's account."
    return words_of(provider, reply, key) or f"{provider.name} answered {reply.status}."


def words_of(provider: Provider, reply: Reply, key: str) -> str:
    """The provider's own explanation; nothing when somebody in between answered for it."""
    told: Any = None
    with suppress(*_UNREADABLE):
        told = provider.error_message(reply) if provider.error_message else reply.json["error"]["message"]
    return clean(told, key) if isinstance(told, str) else ""


def clean(text: str | None, key: str = "") -> str:
    """A stranger's words made fit to show: one line, not too long, no credentials."""
    line = _CONTROL.sub(" ", text or "").strip()
    if key:
        line = line.replace(key, "…")
    return _SECRETS.sub("…", line)[:_LONGEST_MESSAGE]


def retry_after(reply: Reply) -> float | None:
    try:
        seconds = float(reply.headers.get("retry-after", ""))
    except ValueError:
        return None
    return min(seconds, _LONGEST_RETRY_AFTER_SECONDS) if seconds >= 0 else None
