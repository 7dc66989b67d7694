"""The row of a request, and the record that the API shows of it."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import msgspec

from penstock import states
from penstock.accounts.labels import decode_labels
from penstock.schema import CostLine, FailedAttempt
from penstock.store.base import Store
from penstock.store.related import read_related
from penstock.values import Nanos, OrgId, dollars, iso

OPEN_STATUSES = tuple(status for status in states.REQUEST if status not in states.ended(states.REQUEST))
NOT_CHARGED = "not_charged"  # the metric of the line for a cost above the hold, which nobody is charged for

_decode_lines = msgspec.json.Decoder(tuple[CostLine, ...]).decode
decode_attempts = msgspec.json.Decoder(tuple[FailedAttempt, ...]).decode  # what `encode_attempts` made
_encode = msgspec.json.Encoder().encode


class RequestRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table `requests`. Money is in nano-dollars."""

    org_id: OrgId
    id: str
    key_id: str
    created_at_ms: int
    model: str | None
    modality: str | None
    endpoint: str
    status: str
    hold: int
    cost: int
    duration_ms: int | None
    error_code: str | None
    error_message: str | None
    session_id: str | None
    trace_id: str | None
    end_user: str | None
    request_bytes: int | None
    response_bytes: int | None
    purged_at_ms: int | None
    process_id: str | None
    kind: str | None
    provider: str | None
    upstream_model: str | None
    input_tokens: int | None
    cached_tokens: int | None
    output_tokens: int | None
    cost_lines: str | None
    attempts: str | None
    labels: str | None
    account_id: str | None
    vendor_cost: int | None
    drill: str | None

    @property
    def is_open(self) -> bool:
        return self.status in OPEN_STATUSES

    @property
    def executed_model(self) -> str | None:
        return f"{self.provider}/{self.upstream_model}" if self.provider and self.upstream_model else None

    def decode_cost_lines(self) -> list[CostLine]:
        """What was priced. The amounts add up to the cost: a part that was not charged is a line of its own."""
        if self.cost_lines is None:
            return []
        lines = list(_decode_lines(self.cost_lines))
        if rest := self.cost - sum(line.amount for line in lines):
            lines.append(CostLine(NOT_CHARGED, 1, None, Nanos(rest)))
        return lines

    def decode_attempts(self) -> tuple[FailedAttempt, ...]:
        """The failed attempts of a chat call."""
        return () if self.attempts is None else decode_attempts(self.attempts)


def attempts_without_messages(row: RequestRow) -> str | None:
    """The failed attempts of a chat call as JSON, without the providers' messages, which may quote the request."""
    return encode_attempts([msgspec.structs.replace(attempt, message=None) for attempt in row.decode_attempts()])


def encode_lines(lines: Sequence[CostLine]) -> str | None:
    return _encode(lines).decode() if lines else None


def encode_attempts(attempts: Sequence[FailedAttempt]) -> str | None:
    return _encode(attempts).decode() if attempts else None


def request_record(row: RequestRow) -> dict[str, Any]:
    """Return what the row itself says as the request record of the interface, with further fields."""
    return {
        "id": row.id,
        "object": "request",
        "created_at": iso(row.created_at_ms),
        "model": row.model,
        "modality": row.modality,
        "endpoint": row.endpoint,
        "status": row.status,
        "cost": dollars(Nanos(row.cost)),
        "currency": "usd",
        "duration_ms": row.duration_ms,
        "key_id": row.key_id,
        "error_code": row.error_code,
        "error_message": row.error_message,
        "session_id": row.session_id,
        "trace_id": row.trace_id,
        "user": row.end_user,
        "labels": decode_labels(row.labels),
        "drill": row.drill,
        "request_size_bytes": row.request_bytes,
        "response_size_bytes": row.response_bytes,
        "kind": row.kind,
        "provider": row.provider,
        "executed_model": row.executed_model,
        "input_tokens": row.input_tokens,
        "cached_tokens": row.cached_tokens,
        "output_tokens": row.output_tokens,
        "vendor_cost": None if row.vendor_cost is None else dollars(Nanos(row.vendor_cost)),
        "cost_lines": [_line(line) for line in row.decode_cost_lines()],
        "purged_at": None if row.purged_at_ms is None else iso(row.purged_at_ms),
    }


async def read_prompts(store: Store, ids: Sequence[str], org_id: OrgId) -> dict[str, str]:
    """By request the beginning of its prompt, where that is stored."""
    rows = await read_related(store, "list_prompts_of_requests", ids, org_id=org_id)
    return {row["id"]: row["prompt"] for row in rows}


def _line(line: CostLine) -> dict[str, Any]:
    return {
        "metric": line.metric,
        "quantity": line.quantity,
        "unit_price": None if line.unit_usd is None else Decimal(f"{Decimal(line.unit_usd).normalize():f}"),
        "amount": dollars(line.amount),
    }
