"""Batches of chat calls at a provider: send one, look for it, follow it, and read what became of its calls."""

from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from typing import Any, TypeVar

import msgspec

from penstock.net.errors import MaybeSent, NotSent
from penstock.providers.batches import ChatBatches
from penstock.providers.spec import Reply, Upload
from penstock.upstream.candidate import Candidate
from penstock.upstream.client import Upstream
from penstock.upstream.failures import AttemptFailed, Failure, connection_failure, http_failure

T = TypeVar("T")

ENDED = ("completed", "failed", "expired", "cancelled")
_OWN_ID = "penstock_id"  # the name in `metadata` by which a batch is found again
_LISTED = 100
_PAGES_MAX = 20
# Of errors that come with a response: they may pass, or the request may have been carried out all the same.
_UNDECIDED = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS)

Answers = dict[str, bytes | Failure]  # by the custom id of a call: the body of its response, or why it has none


class VendorBatch(msgspec.Struct):
    """A batch as the provider shows it."""

    id: str
    status: str
    output_file_id: str | None = None
    error_file_id: str | None = None
    metadata: dict[str, Any] | None = None
    errors: Any = None

    @property
    def has_ended(self) -> bool:
        return self.status in ENDED


class _Page(msgspec.Struct):
    data: list[VendorBatch]
    has_more: bool = False


class _Response(msgspec.Struct):
    status_code: int = 0
    body: msgspec.Raw = msgspec.Raw(b"null")


class _Line(msgspec.Struct):
    custom_id: str
    response: _Response | None = None
    error: Any = None


def input_line(batches: ChatBatches, custom_id: str, body: Mapping[str, Any]) -> bytes:
    """The line of a batch's file for one call."""
    line = {"custom_id": custom_id, "method": "POST", "url": batches.endpoint, "body": body}
    return msgspec.json.encode(line) + b"\n"


def is_refusal(failure: Failure) -> bool:
    """Whether the provider has decided not to do what it was asked; otherwise that is not known, or may change."""
    status = failure.status
    return status is not None and 400 <= status < 500 and status not in _UNDECIDED


class VendorBatches:
    """The batches of one candidate. Every call raises AttemptFailed."""

    def __init__(self, upstream: Upstream, candidate: Candidate) -> None:
        batches = candidate.model.op.batches
        assert batches is not None, "the candidate was chosen for it"
        self._upstream = upstream
        self._candidate = candidate
        self._batches = batches

    async def upload(self, lines: bytes) -> str:
        """Upload the file of a batch; return its id there. A file that nothing refers to does no harm."""
        form = (("purpose", "batch"), ("file", Upload(lines, "application/jsonl", "batch.jsonl")))
        return str(await self._ask("POST /files", {}, lambda reply: reply.json["id"], form=form))

    async def create(self, file_id: str, own_id: str) -> VendorBatch:
        """Begin a batch. After a failure that is no refusal it may exist; `find` says so."""
        body = {
            "input_file_id": file_id,
            "endpoint": self._batches.endpoint,
            "completion_window": self._batches.window,
            "metadata": {_OWN_ID: own_id},
        }
        return await self._ask("POST /batches", {}, _read_batch, body=body)

    async def find(self, own_id: str) -> VendorBatch | None:
        """The batch that was created with an id of ours; None if the provider has none."""
        after = ""
        for _ in range(_PAGES_MAX):
            page = await self._ask(f"GET /batches?limit={_LISTED}{after}", {}, _read_page)
            for batch in page.data:
                if (batch.metadata or {}).get(_OWN_ID) == own_id:
                    return batch
            if not page.has_more or not page.data:
                return None
            after = f"&after={page.data[-1].id}"
        return None

    async def get(self, batch_id: str) -> VendorBatch:
        return await self._ask("GET /batches/{id}", {"id": batch_id}, _read_batch)

    async def cancel(self, batch_id: str) -> VendorBatch:
        return await self._ask("POST /batches/{id}/cancel", {"id": batch_id}, _read_batch)

    async def answers(self, batch: VendorBatch) -> Answers:
        """What became of the calls of a batch that has ended. Calls that it did not come to have no answer."""
        found: Answers = {}
        for file_id in (batch.output_file_id, batch.error_file_id):
            if file_id:
                found |= await self._ask("GET /files/{id}/content", {"id": file_id}, self._read_answers)
        return found

    async def _ask(
        self, template: str, ref: Mapping[str, str], read: Callable[[Reply], T], *, form: Any = (), body: Any = None
    ) -> T:
        try:
            return await self._upstream.exchange(self._candidate, template, ref, read, form=form, body=body)
        except (NotSent, MaybeSent) as problem:
            raise AttemptFailed(connection_failure(self._candidate.provider, problem)) from None

    def _read_answers(self, reply: Reply) -> Answers:
        return {line.custom_id: self._answer(line) for line in _lines(bytes(reply.body))}

    def _answer(self, line: _Line) -> bytes | Failure:
        response = line.response
        if response is None or not response.status_code:
            return unanswered(self._candidate)
        body = bytes(response.body)
        return body if response.status_code == HTTPStatus.OK else self._failure(response.status_code, body)

    def _failure(self, status: int, body: bytes) -> Failure:
        return http_failure(self._candidate, Reply(status, {}, body))


def unanswered(candidate: Candidate) -> Failure:
    """Why a call has no answer: its batch was refused, or ended before the provider came to it."""
    return Failure("timeout", f"{candidate.provider.name}'s batch ended without an answer to this call.")


def _read_batch(reply: Reply) -> VendorBatch:
    return msgspec.json.decode(reply.body, type=VendorBatch)


def _read_page(reply: Reply) -> _Page:
    return msgspec.json.decode(reply.body, type=_Page)


def _lines(body: bytes) -> Iterator[_Line]:
    for text in body.splitlines():
        if text.strip():
            yield msgspec.json.decode(text, type=_Line)
