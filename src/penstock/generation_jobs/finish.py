"""End a generation, completed or failed: money, records, files and webhook messages in one transaction."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from decimal import Decimal

import msgspec
import structlog

from penstock.accounts import transfers
from penstock.accounts.generation_ends import GenerationEnd
from penstock.accounts.labels import encode_labels
from penstock.accounts.payloads import expiry_ms
from penstock.accounts.prices import Line, cost_lines, is_callers_risk
from penstock.accounts.requests import RequestEnd, RequestUsage, request_end_values
from penstock.errors import Cancelled, Problem, StorageUnavailable
from penstock.failpoints import failpoint
from penstock.gateway import Gateway
from penstock.generation_jobs import orphans
from penstock.generation_jobs.job import Job, attempt_end
from penstock.generation_jobs.mailbox import CompletedGeneration
from penstock.generation_jobs.parts import AttemptResult
from penstock.generation_jobs.rows import Follow, GenerationRow, Recording
from penstock.media.transfer import OutputNotStored
from penstock.recordings import recordings
from penstock.recordings.rows import RecordingFileRow, RecordingRow
from penstock.schema import LISTEN_TASKS, SLOT_MS, SOUND_TASKS, CostLine, GenerationResult, StoredOutput
from penstock.store.base import Change, Row
from penstock.store.waiting import retry_while_unavailable
from penstock.telemetry.call_report import report_result
from penstock.telemetry.metrics import NO_PROVIDER
from penstock.telemetry.tracing import span
from penstock.upstream.faults import dropped_deliveries
from penstock.values import ZERO, Nanos, Retention, dollars, nanos
from penstock.webhooks import events

log = structlog.get_logger()
_AFTER_DELIVERY_SECONDS = 600  # in which callers that poll can learn where the copies are
_EVENT_OBJECTS = {"video": "video", **dict.fromkeys((*SOUND_TASKS, *LISTEN_TASKS), "audio")}  # the others are images


class NewResult(msgspec.Struct, frozen=True):
    """The result of a generation before it is stored."""

    result: GenerationResult
    outputs: Sequence[StoredOutput]
    attempts: Sequence[AttemptResult] = ()  # those that made the outputs; none for a replay or a mock
    cost: Nanos = ZERO
    recording: Recording | None = None  # if it is to be recorded


class NewFailure(msgspec.Struct, frozen=True):
    """Why a generation fails, and who pays for what was made for it."""

    problem: Problem
    lost: Sequence[AttemptResult] = ()  # attempts whose cost is a loss
    paid: Sequence[AttemptResult] = ()  # attempts whose cost the caller pays
    cost: Nanos = ZERO  # what the caller pays
    lines: Sequence[CostLine] = ()  # of the cost

    @property
    def request_status(self) -> str:
        return "cancelled" if isinstance(self.problem, Cancelled) else "upstream_failure"

    @property
    def losses(self) -> list[tuple[str, Nanos]]:
        found = [(attempt.attempt_id, nanos(attempt.cost_usd)) for attempt in self.lost]
        return sorted((attempt_id, cost) for attempt_id, cost in found if cost)


async def complete(gateway: Gateway, job: Job, new: NewResult) -> None:
    """Complete a generation: store its result, its outputs, its recording and the webhook message, and capture its
    cost.

    Raises LeaseLost when another worker runs it now, OutputNotStored when an image's recording cannot be stored.
    """
    now = max(gateway.clock.now_ms(), job.row.created_at_ms)  # the clock may have been set back
    until = now + _retention_seconds(gateway, job, new) * 1000
    copies, urls = await _prepare_files(gateway, job, new, until)

    hold_end = transfers.EndedHold(job.org_id, job.id, job.row.hold, new.cost)
    charged = hold_end.charged
    account_id = new.attempts[0].part.candidate.account_id if new.attempts else ""
    usage = _usage(job.row, job.key_id, encode_labels(job.request.labels), "completed", charged)
    usage = usage._replace(account_id=account_id or None, vendor_cost=_vendor_cost(new.attempts))
    changes: list[Change] = [
        _completed_generation(gateway, job, new.result, now, until),
        *_attempt_ends(new.attempts, now),
        *(("add_media", row) for row in gateway.media.output_rows(job.org_id, job.id, new.outputs, until)),
        *([_expired_inputs(job.row, now)] if job.request.inputs else ()),
        *(("add_seal", row) for row in gateway.media.seal_rows(job.org_id, job.id, new.outputs)),
        _completed_request(job, new, charged, now),
    ]
    if isinstance(job.plan.source, Recording | Follow):
        changes.append(("release_recording_claim", {"request_id": job.id}))
    if job.history.has_unknown_outcome:
        changes.append(orphans.first_checks(gateway, job.row))
    if new.recording:
        changes += recordings.new_recording(_recording_row(job, new.recording, new, now), copies)
    message = _message(job.row, "completed", now, outputs=_event_outputs(new, urls), drill=job.request.drill)
    no_message: AbstractContextManager[list[Change]] = nullcontext([])
    with gateway.deliveries.adding(message) if message else no_message as added, span("commit"):
        end = GenerationEnd(hold_end, usage, now, [*changes, *added])
        await retry_while_unavailable(gateway.clock, lambda: gateway.generation_ends.add(end), request_id=job.id)
        failpoint("settle.after_commit")
    sizes = [*(output.size_bytes for output in new.result.outputs), *(copy.size_bytes for copy in copies)]
    gateway.quota.count(job.org_id, sum(sizes))
    made_by = new.result.provider if new.attempts else new.result.origin
    gateway.metrics.count_generation(made_by, job.request.task, "completed", charged)
    report_result(made_by, charged)
    if job.mailbox:
        job.mailbox.end = CompletedGeneration(job.row, job.request, job.plan, new.result, until, new.outputs)
    if hold_end.loss:
        log.warning("cost above hold", request_id=job.id, loss_nanos=hold_end.loss)


def _retention_seconds(gateway: Gateway, job: Job, new: NewResult) -> int:
    """How long the outputs are kept. What is to be kept until it is delivered, and is not, is kept as other outputs."""
    if job.row.retention_seconds:
        return job.row.retention_seconds
    if all(output.delivered for output in new.result.outputs):
        return _AFTER_DELIVERY_SECONDS
    return Retention.parse(gateway.settings.media_retention).seconds


def _event_outputs(new: NewResult, urls: Sequence[str]) -> list[dict[str, object]]:
    """The outputs as receivers of the webhook are told of them."""
    return [{"url": url, **output.further_fields} for url, output in zip(urls, new.result.outputs, strict=False)]


def _completed_generation(
    gateway: Gateway, job: Job, result: GenerationResult, at_ms: int, expires_at_ms: int
) -> Change:
    values = {
        "id": job.id,
        "lease_token": job.lease_token,
        "result": msgspec.json.encode(result),
        "at_ms": at_ms,
        "expires_at_ms": expires_at_ms,
        "payload_expires_at_ms": expiry_ms(gateway.settings, at_ms),
    }
    return "complete_generation", values


def _completed_request(job: Job, new: NewResult, charged: Nanos, at_ms: int) -> Change:
    attempts = new.attempts
    made_by = attempts[0].part.candidate if attempts else None
    end = RequestEnd(
        "completed",
        charged,
        max(0, at_ms - job.row.created_at_ms),
        provider=made_by.provider.slug if made_by else None,
        upstream_model=made_by.model.upstream if made_by else None,
        account_id=(made_by.account_id or None) if made_by else None,
        vendor_cost=_vendor_cost(attempts),
        input_tokens=_reported_tokens(attempts, "input"),
        output_tokens=_reported_tokens(attempts, "output"),
        cost_lines=cost_lines([*_price_lines(attempts), *_charged_failures(job)], new.cost),
    )
    return "end_generation_request", request_end_values(job.org_id, job.id, end)


def _vendor_cost(attempts: Sequence[AttemptResult]) -> Nanos | None:
    """What the vendor bills the organization at its list price; None where the gateway's operator is billed."""
    if all(attempt.listed_lines is None for attempt in attempts):
        return None
    lines = [line for attempt in attempts for line in attempt.listed_lines or attempt.price_lines]
    return nanos(sum((line.cost_usd for line in lines), Decimal(0)))


def _usage(row: GenerationRow, key_id: str, labels: str | None, status: str, charged: Nanos) -> RequestUsage:
    return RequestUsage(row.org_id, key_id, status, row.created_at_ms // SLOT_MS, charged, labels)


def _price_lines(attempts: Iterable[AttemptResult]) -> list[Line]:
    return [line for attempt in attempts for line in attempt.price_lines]


def _charged_failures(job: Job) -> list[Line]:
    """What failed attempts cost that the caller pays for, as a line of the bill."""
    charged = job.history.charged
    return [Line(f"{dollars(charged):f}", "failed_jobs", Decimal(1))] if charged else []


async def _prepare_files(
    gateway: Gateway, job: Job, new: NewResult, until_ms: int
) -> tuple[list[RecordingFileRow], list[str]]:
    """Store the files of the recording, if there is one, and sign the URLs for the webhook, if there is one."""
    try:
        recording = new.recording
        copies = await gateway.recordings.store_files(recording.recording_id, new.outputs) if recording else []
        linked = new.result.outputs if job.row.webhook_url else ()
        base_url = gateway.settings.base_url
        urls = [await gateway.media.signed_url(output.media_id, until_ms, base_url) for output in linked]
    except StorageUnavailable as problem:
        if job.request.task == "video":
            raise  # its outputs can be downloaded again
        raise OutputNotStored from problem
    return copies, urls


def _reported_tokens(attempts: Sequence[AttemptResult], name: str) -> int | None:
    """The tokens that the provider reports, for models that are billed by the token."""
    reported = [int(attempt.result.usage[name]) for attempt in attempts if name in attempt.result.usage]
    return sum(reported) if reported else None


def _attempt_ends(attempts: Sequence[AttemptResult], at_ms: int) -> list[Change]:
    """What stores successful attempts as completed, with the cost of each."""
    return [
        (
            "set_attempt",
            attempt_end(attempt.attempt_id, "completed", at_ms, result=attempt.result, cost=nanos(attempt.cost_usd)),
        )
        for attempt in sorted(attempts, key=lambda attempt: attempt.attempt_id)
    ]


def _expired_inputs(row: GenerationRow, at_ms: int) -> Change:
    return "expire_inputs", {"request_id": row.id, "org_id": row.org_id, "at_ms": at_ms}


def _recording_row(job: Job, recording: Recording, new: NewResult, now: int) -> RecordingRow:
    fingerprint = recording.fingerprint
    return RecordingRow(
        id=recording.recording_id,
        org_id=job.org_id,
        request_id=job.id,
        kind=fingerprint.kind,
        task=job.request.task,
        model=fingerprint.model,
        standard=fingerprint.standard,
        strict=fingerprint.strict,
        exact=fingerprint.exact or None,
        request=msgspec.json.encode(fingerprint.values),
        result=recordings.encode_result(new.result, [stored.output for stored in new.outputs]),
        duration_ms=max(0, now - job.row.created_at_ms),
        created_at_ms=now,
    )


# -------------------------------------------------------------------------------------------------------------- failing


async def fail(gateway: Gateway, job: Job, problem: Problem) -> None:
    """Fail or cancel a generation and release its hold. What was made for it is a loss; where the price is for the time
    of a machine that runs what the caller chose, or the problem says so, it is charged, unless the failure is the
    gateway's own.

    Raises LeaseLost when another worker runs it, or it ended.
    """
    made = job.history.made
    is_charged = problem.charges_outputs
    paid = [attempt for attempt in made if is_charged or is_callers_risk(attempt.part.candidate.model, job.request)]
    if isinstance(problem, StorageUnavailable):
        paid = []
    lost = [attempt for attempt in made if attempt not in paid]
    cost = Nanos(sum(nanos(attempt.cost_usd) for attempt in paid) + job.history.charged)
    lines = cost_lines([*_price_lines(paid), *_charged_failures(job)], cost)
    failure = NewFailure(problem, lost, paid, cost, lines)
    labels = encode_labels(job.request.labels)
    end = failed_end(gateway, job.row, job.lease_token, job.key_id, labels, failure, job.request.drill)
    with span("commit"):
        await gateway.generation_ends.add(end)
    failpoint("settle.after_commit")
    report_failure(gateway, job.row, failure, end.hold_end.charged)


def failed_end(
    gateway: Gateway,
    row: GenerationRow,
    lease_token: int,
    key_id: str,
    labels: str | None,
    failure: NewFailure,
    drill: str,
) -> GenerationEnd:
    """The end of a generation that fails or is cancelled; after its transaction the caller calls `report_failure`."""
    now = gateway.clock.now_ms()
    problem = failure.problem
    hold_end = transfers.EndedHold(row.org_id, row.id, row.hold, failure.cost or None)
    end = RequestEnd(
        failure.request_status,
        cost=hold_end.charged,
        duration_ms=max(0, now - row.created_at_ms),
        cost_lines=failure.lines,
        error_code=problem.code,
        error_message=problem.message,
    )
    failed = {
        "id": row.id,
        "lease_token": lease_token,
        "error_code": problem.code,
        "error_message": problem.message,
        "payload_expires_at_ms": expiry_ms(gateway.settings, now),
    }
    changes: list[Change] = [
        ("fail_generation", failed),
        ("release_recording_claim", {"request_id": row.id}),
        *_attempt_ends([*failure.lost, *failure.paid], now),
        orphans.first_checks(gateway, row),
        _expired_inputs(row, now),
        ("end_generation_request", request_end_values(row.org_id, row.id, end)),
    ]
    event_status = "cancelled" if isinstance(problem, Cancelled) else "failed"
    error = {"code": problem.code, "message": problem.message}
    if message := _message(row, event_status, now, error=error, drill=drill):
        changes.append(("add_message", message))
    usage = _usage(row, key_id, labels, end.status, hold_end.charged)
    return GenerationEnd(hold_end, usage, now, changes, failure.losses)


def report_failure(gateway: Gateway, row: GenerationRow, failure: NewFailure, charged: Nanos = ZERO) -> None:
    """Count a failed generation, and have its webhook message delivered."""
    gateway.metrics.count_generation(NO_PROVIDER, row.task, failure.request_status, charged)
    if row.webhook_url:
        gateway.deliveries.wake()


def _message(
    row: GenerationRow,
    status: str,
    at_ms: int,
    *,
    outputs: Sequence[dict[str, object]] = (),
    error: dict[str, str] | None = None,
    drill: str,
) -> Row | None:
    """The webhook message of an ended generation for the query `add_message`, if its caller wants one."""
    if not row.webhook_url:
        return None
    event = event_name(row, status)
    return events.message_row(
        org_id=row.org_id,
        request_id=row.id,
        url=row.webhook_url,
        event=event,
        body=events.event_body(event, row.id, row.model, outputs=outputs, error=error),
        at_ms=at_ms,
        trace_context=row.trace_context,
        drops=dropped_deliveries(drill),
    )


def event_name(row: GenerationRow, status: str) -> str:
    """The name of a webhook event, such as `video.completed`."""
    return f"{_EVENT_OBJECTS.get(row.task, 'image')}.{status}"


def failure_event_body(row: GenerationRow, message: str) -> bytes:
    """The webhook event of a failed or cancelled generation, with this text instead of the stored one."""
    event = event_name(row, "cancelled" if row.error_code == Cancelled.code else "failed")
    return events.event_body(event, row.id, row.model, error={"code": row.error_code or "", "message": message})
