"""Compare models on the same prompts: make trials, follow them, delete them."""

from collections.abc import Mapping
from typing import Any

from penstock.api import query
from penstock.api.endpoints.batches import MAX_COST_FIELD, batch_claim, budget, make_once, one_file, repetition_headers
from penstock.api.fields import checked_fields
from penstock.api.paging import LIMIT, cursors, page_body
from penstock.api.responses import NO_STORE
from penstock.batches.intake import new_batch_id
from penstock.batches.lines import Line
from penstock.errors import InvalidRequest
from penstock.fields import Field, array_field, field_table, flag_field, integer_field, object_field, text_field
from penstock.gateway import Gateway
from penstock.generations import forms
from penstock.schema import Call, Response
from penstock.store.paging import Pager
from penstock.trials import intake, links, prompts, verdict
from penstock.trials.intake import NewTrial
from penstock.trials.records import KINDS, PREFIX, TrialRecord, find_trial_of_batch, get_trial, trial_object
from penstock.trials.results import trial_results

_LONGEST_NAME = 190
_SOURCES = ("prompts", "file", "recent")
TRIAL_FIELDS = field_table(
    array_field("models", f"Ids of 2 to {intake.MOST_MODELS} models.", required=True),
    text_field("kind", "What the models make.", one_of=KINDS, default="image"),
    array_field(
        "prompts", f"The prompts: texts, or objects with the fields of a call; {prompts.MOST_PROMPTS} at most."
    ),
    Field(name="file", types=("file",), about="JSONL, or CSV whose first row names the fields; in a form."),
    object_field(
        "recent", "The prompts of past requests: `limit` of the newest ones (20), perhaps only of one `model`."
    ),
    object_field("parameters", "Fields of every call that its prompt does not have itself, such as `size`."),
    text_field("name", "Your name for the trial.", max_length=_LONGEST_NAME),
    MAX_COST_FIELD,
    flag_field("start", "Whether its batch runs at once; otherwise it waits to be resumed.", default=True),
)
LINK_FIELDS = field_table(
    integer_field(
        "expires_in_days", "For how many days it works.", low=1, high=links.MOST_DAYS, default=links.DEFAULT_DAYS
    ),
    flag_field("show_prompts", "Whether voters see the prompt of a pair.", default=True),
)
VERDICT_FIELDS = field_table(
    text_field("model", "The model of the trial that is to be used.", required=True, max_length=256),
    text_field("alias", "What calls ask for that are to get it: another model, or a new name.", required=True),
)
TRIALS_QUERY = (LIMIT, *cursors("trial"))


async def create_trial(gateway: Gateway, call: Call) -> Response:
    """Check and price each prompt with each model; then run them, or with `dryRun` only say what they would cost."""
    body = forms.read(call.form, TRIAL_FIELDS) if call.is_form else call.json
    fields = checked_fields({**body, "file": one_file(body.get("file"))}, TRIAL_FIELDS)
    trial = NewTrial(
        kind=fields.get("kind", KINDS[0]),
        models=intake.checked_models(call.caller, fields["models"]),
        prompts=await _prompts(gateway, call, fields),
        name=fields.get("name"),
        max_cost=budget(fields),
        start=fields.get("start", True),
    )
    if call.dry_run:
        return Response(json=await intake.estimate_trial(gateway, call.caller, trial))
    batch_id = new_batch_id(gateway)
    claim = await batch_claim(gateway, call, fields, batch_id, "trial")
    batch = await make_once(gateway, claim, lambda: intake.create_rows(gateway, call.caller, trial, batch_id, claim))
    if batch.id == batch_id:
        return Response(json=_shown(gateway, await intake.store_trial(gateway, call.caller, trial, batch_id)))
    made = await find_trial_of_batch(gateway.store, call.caller.org_id, batch.id)
    if made is None:  # its process ended before it stored the trial
        made = await intake.store_trial(gateway, call.caller, trial, batch.id)
    return Response(json=_shown(gateway, made), headers=repetition_headers(True))


async def _prompts(gateway: Gateway, call: Call, fields: Mapping[str, Any]) -> list[Line]:
    if sum(name in fields for name in _SOURCES) != 1:
        raise InvalidRequest("Send `prompts`, `file` or `recent`, one of them.", param="prompts")
    kind = fields.get("kind", KINDS[0])
    parameters = {**prompts.kept_fields(gateway.settings, kind), **fields.get("parameters", {})}
    if "file" in fields:
        return prompts.read_file(kind, fields["file"], parameters)
    if "recent" in fields:
        return await prompts.read_recent(gateway, call.caller.org_id, kind, fields["recent"], parameters)
    return prompts.read_prompts(kind, fields["prompts"], parameters)


def _shown(gateway: Gateway, trial: TrialRecord) -> dict[str, Any]:
    return trial_object(trial, gateway.clock.now_ms())


async def list_trials(gateway: Gateway, call: Call) -> Response:
    asked = query.read(TRIALS_QUERY, call.query)
    pager = Pager(gateway.store, "trial", PREFIX, TrialRecord)
    page = await pager.page(call.caller.org_id, asked["limit"], asked["starting_after"], asked["ending_before"])
    return Response(json=page_body(call, TRIALS_QUERY, page.with_data([_shown(gateway, row) for row in page.data])))


async def retrieve_trial(gateway: Gateway, call: Call) -> Response:
    """Return a trial with what each model cost, how long it took, and how often it won."""
    return Response(json=await trial_results(gateway, await _trial(gateway, call)))


async def delete_trial(gateway: Gateway, call: Call) -> Response:
    """Delete a trial and its votes; its batch begins no more rows."""
    await intake.delete_trial(gateway, await _trial(gateway, call))
    return Response(status=204)


async def share_trial(gateway: Gateway, call: Call) -> Response:
    """Make the link by which people vote; an earlier one ends."""
    fields = checked_fields(call.json, LINK_FIELDS)
    link = await links.make_link(
        gateway,
        await _trial(gateway, call),
        call.base_url,
        days=fields.get("expires_in_days", links.DEFAULT_DAYS),
        shows_prompts=fields.get("show_prompts", True),
    )
    return Response(json=link, headers=NO_STORE)


async def unshare_trial(gateway: Gateway, call: Call) -> Response:
    """End the link by which people vote."""
    await links.revoke_link(gateway, await _trial(gateway, call))
    return Response(status=204)


async def decide_trial(gateway: Gateway, call: Call) -> Response:
    """Let calls for an alias get a model of the trial, or with `dryRun` only say what that saves."""
    trial = await _trial(gateway, call)
    fields = checked_fields(call.json, VERDICT_FIELDS)
    work = verdict.preview if call.dry_run else verdict.decide
    return Response(json=await work(gateway, trial, fields["model"], fields["alias"]))


async def _trial(gateway: Gateway, call: Call) -> TrialRecord:
    return await get_trial(gateway.store, call.caller.org_id, call.path["trial_id"])
