"""Read the prompts of a trial: typed ones, those of a file, or those of recent requests."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from penstock.accounts.payloads import get_payload
from penstock.audit_log import Act, note_act
from penstock.batches import lines
from penstock.batches.lines import CHATS, IMAGES, VIDEOS, BadLine, Line, RowFault
from penstock.errors import InvalidRequest, quoted
from penstock.fields import UploadedFile
from penstock.gateway import Gateway
from penstock.generation_jobs.rows import get_generation
from penstock.settings import Settings
from penstock.trials.records import KINDS
from penstock.values import OrgId, Retention

MOST_PROMPTS = 200
ENDPOINTS: Mapping[str, str] = dict(zip(KINDS, (IMAGES, VIDEOS, CHATS), strict=True))
_KEPT = "14d"  # outputs, unless the call says otherwise: as long as a link works
_RECENT = ("limit", "model")
_DEFAULT_RECENT = 20
_LOOKED_AT = 5  # times as many requests, because some have no prompt any more, and others the same
# Of a past request, what says how its output is to look; the rest depends on its model.
_SHAPE = ("prompt", "size", "aspect_ratio", "resolution", "seconds")


def kept_fields(settings: Settings, kind: str) -> dict[str, str]:
    """The fields by which outputs are kept for as long as people vote, as far as callers may ask for that."""
    if kind == "chat":
        return {}
    longest = settings.media_retention_max
    is_shorter = Retention.parse(longest).seconds < Retention.parse(_KEPT).seconds
    return {"media_retention": longest if is_shorter else _KEPT}


def read_prompts(kind: str, values: Iterable[Any], parameters: Mapping[str, Any]) -> list[Line]:
    """Prompts that are texts, or objects with the fields of a call. Raises InvalidRequest."""
    bodies = [{"prompt": value} if isinstance(value, str) else value for value in values]
    wrong = next((number for number, body in enumerate(bodies, 1) if not isinstance(body, dict)), None)
    if wrong is not None:
        message = f"Prompt {wrong} must be a text, or an object with the fields of a call."
        raise InvalidRequest(message, param="prompts")
    return _checked(lines.read_json(bodies, ENDPOINTS[kind], parameters), kind, "prompts")


def read_file(kind: str, file: UploadedFile, parameters: Mapping[str, Any]) -> list[Line]:
    """The rows of a CSV or JSONL file, as batches read them. Raises InvalidRequest."""
    is_csv = file.content_type == "text/csv" or file.filename.lower().endswith(".csv")
    read = lines.read_csv if is_csv else lines.read_jsonl
    return _checked(read(file.data, ENDPOINTS[kind], parameters), kind, "file")


async def read_recent(
    gateway: Gateway, org_id: OrgId, kind: str, asked: Mapping[str, Any], parameters: Mapping[str, Any]
) -> list[Line]:
    """The prompts of the newest completed requests of the organization, each once; of those with input files none,
    because inputs are not kept. Raises InvalidRequest.
    """
    limit, model = _recent(asked)
    page = {"org_id": org_id, "kind": kind, "model": model, "high": "req_~", "limit": limit * _LOOKED_AT}
    bodies: dict[bytes, dict[str, Any]] = {}
    for row in await gateway.store.slow("list_prompts_to_compare", **page):
        body = await (_past_chat if kind == "chat" else _past_media)(gateway, org_id, row["id"])
        if body is not None:
            bodies.setdefault(msgspec.json.encode(body, order="deterministic"), body)
        if len(bodies) == limit:
            break
    if not bodies:
        which = f"of the model `{model}` " if model else ""
        message = f"No completed {kind} request {which}has a prompt that is still stored."
        raise InvalidRequest(message, param="recent")
    # They may be those of other keys.
    act = Act("payloads.read", "recent requests", org_id, after={"kind": kind, "requests": len(bodies)})
    await note_act(gateway.store, gateway.clock.now_ms(), act)
    fixed = ({**body, **parameters} for body in bodies.values())
    return _checked(lines.read_json(fixed, ENDPOINTS[kind], {}), kind, "recent")


def _recent(asked: Mapping[str, Any]) -> tuple[int, str | None]:
    if unknown := next((name for name in asked if name not in _RECENT), None):
        message = f"`recent.{unknown[:64]}` is not a field here; allowed are {quoted(_RECENT)}."
        raise InvalidRequest(message, param="recent")
    limit = asked.get("limit", _DEFAULT_RECENT)
    model = asked.get("model")
    if type(limit) is not int or not 1 <= limit <= MOST_PROMPTS:
        raise InvalidRequest(f"`recent.limit` must be a number from 1 to {MOST_PROMPTS}.", param="recent.limit")
    if model is not None and not isinstance(model, str):
        raise InvalidRequest("`recent.model` must be the id of a model.", param="recent.model")
    return limit, model


async def _past_media(gateway: Gateway, org_id: OrgId, request_id: str) -> dict[str, Any] | None:
    row = await get_generation(gateway.store, request_id, org_id)
    request = row.decode_request() if row else None
    if request is None or request.inputs or "prompt" not in request.values:
        return None
    return {name: request.values[name] for name in _SHAPE if name in request.values}


async def _past_chat(gateway: Gateway, org_id: OrgId, request_id: str) -> dict[str, Any] | None:
    payload = await get_payload(gateway.store, org_id, request_id)
    try:
        body = msgspec.json.decode(payload.request, type=dict[str, Any]) if payload else {}
    except msgspec.DecodeError:
        return None
    return {"messages": body["messages"]} if "messages" in body else None


def _checked(read: Iterator[Line | BadLine], kind: str, param: str) -> list[Line]:
    """The prompts, if all can be read, call the endpoint of the trial and ask for one output. Raises InvalidRequest."""
    found: list[Line] = []
    for line in read:
        if len(found) == MOST_PROMPTS:
            raise InvalidRequest(f"A trial may have at most {MOST_PROMPTS} prompts.", param=param)
        try:
            found.append(_prompt(line, kind))
        except RowFault as fault:
            where = f", column `{fault.column}`" if fault.column else ""
            message = f"Prompt {line.number}{where}: {fault.message}"
            raise InvalidRequest(message, param=fault.column or param) from None
    if not found:
        raise InvalidRequest("The trial has no prompts.", param=param)
    return found


def _prompt(line: Line | BadLine, kind: str) -> Line:
    """A line that can be a prompt of the trial; of a chat, its `prompt` is a message. Raises RowFault."""
    if isinstance(line, BadLine):
        raise line.fault
    if line.endpoint != ENDPOINTS[kind]:
        raise RowFault(
            f"A prompt of this trial calls {ENDPOINTS[kind].removeprefix('/compat')}; leave out `url`.", "url"
        )
    body = line.body
    if body.get("n", 1) != 1:
        raise RowFault("A trial compares one output per prompt and model; leave out `n`.", "n")
    if kind == "chat" and isinstance(body.get("prompt"), str):
        rest, messages = lines.without_prompt(body)
        body = {**rest, **messages}
    return msgspec.structs.replace(line, body=body)
