"""Records of the past, written into the database of a stopped gateway: for the overview in tests and screenshots."""

import math
import random
import sqlite3
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.schema import SLOT_MS

DAY_MS = 86_400_000
_INSERT = """
INSERT INTO requests (org_id, id, key_id, created_at_ms, model, modality, endpoint, status, cost, duration_ms,
    error_code, error_message, kind, provider, upstream_model)
VALUES (:org_id, :id, :key_id, :created_at_ms, :model, :modality, '/compat/v1/images/generations', :status, :cost,
    :duration_ms, :error_code, :error_message, :kind, :provider, 'model')
"""
_ADD_SLOT = """
INSERT INTO usage_slots (org_id, key_id, status, slot, count, cost) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (org_id, key_id, status, slot) DO UPDATE SET count = count + excluded.count, cost = cost + excluded.cost
"""
_MESSAGES = {
    "completed": (None, None),
    "upstream_failure": ("UPSTREAM_TIMEOUT", "The provider did not answer in time."),
    "rejected": ("INVALID_REQUEST", "`size` must be from 16 to 8192 pixels on each side."),
}


@dataclass(frozen=True, slots=True)
class PastModel:
    """What the records of one model look like."""

    model: str
    kind: str
    nanos: int
    usual_ms: int
    share: float


MODELS = (
    PastModel("atelier/sketch", "image", 1_000_000, 900, 0.5),
    PastModel("atelier/clip", "video", 4_000_000, 6000, 0.2),
    PastModel("openai/gpt-image-2", "image", 42_000_000, 14_000, 0.14),
    PastModel("atelier/echo", "chat", 400_000, 400, 0.16),
)


@dataclass(frozen=True, slots=True)
class PastRequest:
    """A row of the table `requests`."""

    org_id: str
    id: str
    key_id: str
    created_at_ms: int
    model: str
    modality: str | None
    status: str
    cost: int
    duration_ms: int
    error_code: str | None
    error_message: str | None
    kind: str
    provider: str | None


def write_history(database: Path, days: int, per_day: int, seed: int = 4) -> list[PastRequest]:
    """Add requests of the last days, growing in number and fewer at weekends, and return them."""
    rng = random.Random(seed)
    with sqlite3.connect(database) as connection:
        (org_id,) = connection.execute("SELECT id FROM orgs").fetchone()
        keys = [key_id for (key_id,) in connection.execute("SELECT id FROM keys ORDER BY id")]
        requests = list(_past_requests(rng, org_id, keys, days, per_day))
        columns = PastRequest.__slots__
        connection.executemany(_INSERT, [{name: getattr(request, name) for name in columns} for request in requests])
        connection.executemany(_ADD_SLOT, _slots(requests))
    connection.close()
    return requests


def _slots(requests: Sequence[PastRequest]) -> Iterator[tuple[str, str, str, int, int, int]]:
    """The sums that the gateway keeps beside the requests: of each key, of each status, of both, and of all."""
    for request in requests:
        for key_id in (request.key_id, ""):
            for status in (request.status, ""):
                yield request.org_id, key_id, status, request.created_at_ms // SLOT_MS, 1, request.cost


def _past_requests(
    rng: random.Random, org_id: str, keys: Sequence[str], days: int, per_day: int
) -> Iterator[PastRequest]:
    today_ms = int(time.time() * 1000) // DAY_MS * DAY_MS
    for day in range(1, days + 1):
        start_ms = today_ms - day * DAY_MS
        is_weekend = time.gmtime(start_ms / 1000).tm_wday >= 5
        number = per_day * (1 - 0.6 * day / days) * (0.55 if is_weekend else 1) * rng.uniform(0.85, 1.15)
        for _ in range(round(number)):
            yield _past_request(rng, org_id, rng.choice(keys), start_ms + rng.randrange(DAY_MS))


def _past_request(rng: random.Random, org_id: str, key_id: str, at_ms: int) -> PastRequest:
    (model,) = rng.choices(MODELS, [model.share for model in MODELS])
    (status,) = rng.choices(list(_MESSAGES), [0.965, 0.025, 0.01])
    code, message = _MESSAGES[status]
    return PastRequest(
        org_id=org_id,
        id=f"req_{at_ms:012x}{rng.getrandbits(80):020x}",  # ids sort by time
        key_id=key_id,
        created_at_ms=at_ms,
        model=model.model,
        modality=None if model.kind == "chat" else model.kind,
        status=status,
        cost=model.nanos * rng.choice((1, 1, 2)) if status == "completed" else 0,
        duration_ms=round(rng.lognormvariate(math.log(model.usual_ms), 0.35)),
        error_code=code,
        error_message=message,
        kind=model.kind,
        provider=None if status == "rejected" else model.model.split("/")[0],
    )
