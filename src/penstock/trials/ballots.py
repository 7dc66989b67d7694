"""Blind votes: two outputs side by side under neutral names, and one vote per voter on each pair.

What a voter gets is sealed: it names no model, no trial and no request. Images are shown as small copies of one format,
because files of providers say in their metadata who made them.
"""

import random
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec

from penstock.accounts.payloads import get_payload, prompt_of
from penstock.errors import NotFound, PermissionDenied
from penstock.gateway import Gateway
from penstock.generation_jobs.rows import get_generation
from penstock.media.rows import list_media
from penstock.media.thumbnails import THUMBNAIL_WIDTHS, can_have_thumbnail
from penstock.schema import Response
from penstock.trials.links import digest, get_shared_trial
from penstock.trials.records import TrialRecord, TrialRow, list_rows
from penstock.values import DAY_MS
from penstock.vault import SealBroken

Vote = Literal["left", "right", "tie", "both_bad"]
VOTES: tuple[Vote, ...] = ("left", "right", "tie", "both_bad")
VOTER_CHARS = 32
_MOST_VOTES = 20_000  # on one trial
_VOTER_BYTES = 16  # of its digest
_LONGEST_TEXT = 20_000
_WIDTH = THUMBNAIL_WIDTHS[-1]
_PAIR, _FILE = "pair of a trial", "file of a trial"


class Ballot(msgspec.Struct, frozen=True, array_like=True):
    """What a voter was shown: sealed, and sent back with the vote."""

    link: bytes  # the digest of its text
    voter: bytes
    prompt: int
    left: int  # place of a model
    right: int
    until_ms: int


class _File(msgspec.Struct, frozen=True, array_like=True):
    link: bytes
    request_id: str
    until_ms: int


class Pair(NamedTuple):
    """Two outputs for the same prompt, by the places of their models, the lower one first."""

    prompt: int
    first: int
    second: int


Sealed = TypeVar("Sealed", Ballot, _File)


# --------------------------------------------------------------------------------------------------------------- pairs


async def next_pair(gateway: Gateway, link: str, voter: str | None) -> dict[str, Any]:
    """Two outputs on which this voter has not voted, of those with the fewest votes; without them if none is left.

    Raises NotFound for a link that is not good.
    """
    trial = await get_shared_trial(gateway, digest(link))
    token = voter or secrets.token_urlsafe(VOTER_CHARS * 3 // 4)
    known_as = digest(token)[:_VOTER_BYTES]
    rows = {row.number: row for row in await list_rows(gateway.store, trial)}
    pairs = _pairs(trial, rows, gateway.clock.now_ms())
    page = {"trial_id": trial.id, "voter": known_as}
    voted = {Pair(**row) for row in await gateway.store.slow("list_votes_of_voter", **page)}
    shown: dict[str, Any] = {
        "object": "pair",
        "voter": token,
        "kind": trial.kind,
        "voted": len(voted),
        "total": len(voted.union(pairs)),
        "is_running": trial.status not in ("completed", "cancelled"),
        "pair": None,
        "prompt": None,
        "left": None,
        "right": None,
    }
    chosen = await _choose(gateway, trial, [pair for pair in pairs if pair not in voted])
    if chosen is None:
        return shown
    sides = [chosen.first, chosen.second]
    random.shuffle(sides)
    left, right = (rows[_number(trial, chosen.prompt, side)] for side in sides)
    assert trial.link_digest is not None, "it was found by it"
    until_ms = gateway.clock.now_ms() + DAY_MS
    ballot = Ballot(bytes(trial.link_digest), known_as, chosen.prompt, sides[0], sides[1], until_ms)
    return {
        **shown,
        "pair": _seal(gateway, ballot, _PAIR),
        "prompt": await _prompt(gateway, trial, left) if trial.shows_prompts else None,
        "left": await _output(gateway, trial, left),
        "right": await _output(gateway, trial, right),
    }


def _pairs(trial: TrialRecord, rows: dict[int, TrialRow], now_ms: int) -> list[Pair]:
    """The pairs of outputs that are there."""
    models = len(trial.model_names)

    def is_there(prompt: int, model: int) -> bool:
        row = rows.get(_number(trial, prompt, model))
        return (
            row is not None and row.status == "completed" and (row.expires_at_ms is None or row.expires_at_ms > now_ms)
        )

    found = []
    for prompt in range(1, trial.prompts + 1):
        made = [model for model in range(models) if is_there(prompt, model)]
        found += [Pair(prompt, first, second) for first in made for second in made if first < second]
    return found


def _number(trial: TrialRecord, prompt: int, model: int) -> int:
    """The number of a row of the batch."""
    return (prompt - 1) * len(trial.model_names) + model + 1


async def _choose(gateway: Gateway, trial: TrialRecord, pairs: Sequence[Pair]) -> Pair | None:
    counted = await gateway.store.slow("count_votes_by_pair", trial_id=trial.id)
    votes = {Pair(row["prompt"], row["first"], row["second"]): row["votes"] for row in counted}
    if not pairs or sum(votes.values()) >= _MOST_VOTES:
        return None
    fewest = min(votes.get(pair, 0) for pair in pairs)
    return random.choice([pair for pair in pairs if votes.get(pair, 0) == fewest])  # noqa: S311 - no secret


async def _prompt(gateway: Gateway, trial: TrialRecord, row: TrialRow) -> str | None:
    """The prompt of a pair, while it is stored."""
    assert row.request_id is not None, "it was completed"
    if trial.kind == "chat":
        payload = await get_payload(gateway.store, trial.org_id, row.request_id)
        return prompt_of(_decoded(payload.request)) if payload else None
    generation = await get_generation(gateway.store, row.request_id, trial.org_id)
    request = generation.decode_request() if generation else None
    prompt = request.values.get("prompt") if request else None
    return prompt if isinstance(prompt, str) else None


async def _output(gateway: Gateway, trial: TrialRecord, row: TrialRow) -> dict[str, Any]:
    """An output as a voter sees it: a text, or the sealed name of a file."""
    assert row.request_id is not None, "it was completed"
    assert trial.link_digest is not None, "it was found by it"
    if trial.kind == "chat":
        payload = await get_payload(gateway.store, trial.org_id, row.request_id)
        return {"text": _text(payload.response) if payload else "", "url": None}
    file = _File(bytes(trial.link_digest), row.request_id, gateway.clock.now_ms() + DAY_MS)
    return {"text": None, "url": f"/vote/files/{_seal(gateway, file, _FILE)}"}


def _text(response: bytes | bytearray) -> str:
    """What a chat call was answered."""
    try:
        text = _decoded(response)["choices"][0]["message"]["content"]
    except (KeyError, IndexError, TypeError):
        return ""
    return text[:_LONGEST_TEXT] if isinstance(text, str) else ""


def _decoded(body: bytes | bytearray) -> dict[str, Any]:
    """A stored body that is a JSON object; an empty one for any other."""
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.DecodeError:
        return {}


# --------------------------------------------------------------------------------------------------------------- votes


async def vote(gateway: Gateway, sealed: str, choice: Vote) -> bool:
    """Count a vote on a pair that was shown. False if this voter has voted on it.

    Raises PermissionDenied for a pair that was not shown, and NotFound for a link that is not good any more.
    """
    ballot = _open(gateway, sealed, _PAIR, Ballot)
    await get_shared_trial(gateway, ballot.link)
    first, second = sorted((ballot.left, ballot.right))
    won = {"left": ballot.left, "right": ballot.right}.get(choice)
    values = {
        "digest": ballot.link,
        "voter": ballot.voter,
        "prompt": ballot.prompt,
        "first": first,
        "second": second,
        "choice": choice if won is None else "first" if won == first else "second",
        "at_ms": gateway.clock.now_ms(),
    }
    return bool(await gateway.store.write(lambda tx: tx.run("add_trial_vote", **values)))


# --------------------------------------------------------------------------------------------------------------- files


async def shown_file(gateway: Gateway, sealed: str, range_header: str | None) -> Response:
    """A file of a pair: of an image a small copy without metadata, of a video the file itself under a neutral name.

    Raises PermissionDenied for one that was not shown, and NotFound when the link is not good or the file is gone.
    """
    file = _open(gateway, sealed, _FILE, _File)
    trial = await get_shared_trial(gateway, file.link)
    outputs = [row for row in await list_media(gateway.store, file.request_id, trial.org_id) if row.role == "output"]
    if not outputs or outputs[0].expires_at_ms <= gateway.clock.now_ms():
        raise NotFound("This output is not stored any more.")
    until = outputs[0].expires_at_ms // 1000
    if outputs[0].content_type.startswith("video/"):
        return gateway.media.file_response(outputs[0], range_header, until, "output")
    if not can_have_thumbnail(outputs[0].content_type):
        raise NotFound("Vector images are not shown to voters: they would say who made them.")
    return await gateway.media.thumbnail_response(outputs[0], _WIDTH, until)


# ------------------------------------------------------------------------------------------------------------- sealing


def _seal(gateway: Gateway, value: Ballot | _File, context: str) -> str:
    return urlsafe_b64encode(gateway.vault.seal(msgspec.msgpack.encode(value), context)).rstrip(b"=").decode()


def _open(gateway: Gateway, sealed: str, context: str, kind: type[Sealed]) -> Sealed:
    """What was sealed. Raises PermissionDenied for what was not, or has expired."""
    try:
        data = urlsafe_b64decode(sealed + "=" * (-len(sealed) % 4))
        value = msgspec.msgpack.decode(gateway.vault.open(data, context), type=kind)
    except (ValueError, SealBroken, msgspec.DecodeError):
        raise PermissionDenied("This was not shown by the gateway.") from None
    if value.until_ms <= gateway.clock.now_ms():
        raise PermissionDenied("This was shown too long ago; load the page again.")
    return value
