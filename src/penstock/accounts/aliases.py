"""Names that an organization gives to models: a call that asks for one of them gets the model that it stands for."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from penstock.audit_log import Note, changed, write_audited
from penstock.clock import Clock
from penstock.errors import Conflict, InvalidRequest, NotFound
from penstock.schema import Call, Caller
from penstock.store.base import Store, Transaction
from penstock.values import OrgId

MAX_ALIASES = 100
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}")
_COMPATIBLE = "/compat/"  # the paths whose calls name a model to be used
_decode = msgspec.json.Decoder(dict[str, str]).decode


# ------------------------------------------------------------------------------------------------------- one call


def with_alias(call: Call) -> Call:
    """The call for the model that it gets. One whose key may use the alias may use its model, too."""
    aliases = call.caller.model_aliases
    if not aliases or not call.endpoint.startswith(_COMPATIBLE):
        return call
    name = _named(call)
    model = aliases.get(name) if name else None
    if name is None or model is None:
        return call
    caller = call.caller
    if caller.models is not None and caller.may_use(name):
        caller = replace(caller, models=(*caller.models, model))
    if call.is_form:
        form = tuple((field, model if field == "model" else value) for field, value in call.form)
        return msgspec.structs.replace(call, caller=caller, form=form)
    return msgspec.structs.replace(call, caller=caller, json={**call.json, "model": model})


def _named(call: Call) -> str | None:
    """The model that a call asks for, if it is one text."""
    value = dict(call.form).get("model") if call.is_form else None
    if isinstance(call.json, dict):
        value = call.json.get("model")
    return value if isinstance(value, str) else None


def aliased(caller: Caller, body: dict[str, Any]) -> dict[str, Any]:
    """The body of a call for the model that it gets, for calls that are made later."""
    model = body.get("model")
    found = caller.model_aliases.get(model) if isinstance(model, str) else None
    return body if found is None else {**body, "model": found}


# ------------------------------------------------------------------------------------------------------- storing


def decode_aliases(stored: str | None) -> Mapping[str, str]:
    return {} if stored is None else _decode(stored)


def check_alias(name: str, model: str) -> None:
    """Raise InvalidRequest for a name that no alias can have."""
    if not _NAME.fullmatch(name):
        message = "An alias must have 1 to 128 letters, digits and `._:/-`, and begin with a letter or a digit."
        raise InvalidRequest(message, param="alias")
    if name == model:
        raise InvalidRequest("An alias must have another name than its model.", param="alias")


async def read_aliases(store: Store | Transaction, org_id: OrgId) -> Mapping[str, str]:
    """The aliases of an organization, and the model of each."""
    row = await store.one("get_model_aliases", org_id=org_id)
    return decode_aliases(row["model_aliases"] if row else None)


async def set_alias(store: Store, clock: Clock, org_id: OrgId, name: str, model: str) -> None:
    """Add or change an alias. Every process notices within two seconds. Raises InvalidRequest or Conflict."""
    check_alias(name, model)

    async def work(tx: Transaction, note: Note) -> None:
        await put_alias(tx, note, org_id, name, model)

    await write_audited(store, clock.now_ms(), work)


async def put_alias(tx: Transaction, note: Note, org_id: OrgId, name: str, model: str) -> None:
    """Add or change an alias in a transaction, whose last change it must be."""
    before = await _lock(tx, org_id)
    after = {**before, name: model}
    if len(after) > MAX_ALIASES:
        raise Conflict(f"An organization may have {MAX_ALIASES} aliases.", should_retry=False)
    if model in after:
        raise Conflict(f"`{model}` is an alias itself; name the model that it stands for.", should_retry=False)
    note(changed("alias.set", name, org_id, {"model": before.get(name)}, {"model": model}))
    await _set(tx, org_id, after)


async def remove_alias(store: Store, clock: Clock, org_id: OrgId, name: str) -> None:
    """Remove an alias; raise NotFound."""

    async def work(tx: Transaction, note: Note) -> None:
        before = await _lock(tx, org_id)
        if name not in before:
            raise NotFound(f"No such alias: {name[:64]}.")
        note(changed("alias.removed", name, org_id, {"model": before[name]}, {}))
        await _set(tx, org_id, {each: model for each, model in before.items() if each != name})

    await write_audited(store, clock.now_ms(), work)


async def _lock(tx: Transaction, org_id: OrgId) -> Mapping[str, str]:
    row = await tx.one("lock_model_aliases", org_id=org_id)
    if row is None:
        raise NotFound(f"No such organization: {org_id}.")
    return decode_aliases(row["model_aliases"])


async def _set(tx: Transaction, org_id: OrgId, aliases: Mapping[str, str]) -> None:
    stored = msgspec.json.encode(aliases).decode() if aliases else None
    await tx.run("set_model_aliases", org_id=org_id, model_aliases=stored)
