"""Make trials of a whole gateway, and wait for them."""

from typing import Any

import msgspec

from penstock.api.endpoints import trials
from penstock.fields import UploadedFile
from penstock.schema import Caller
from penstock.trials.records import TrialRecord, get_trial
from tests.gateway import RunningGateway

MODELS = ["lab/image-1", "annex/image-1"]
SMALL = {"size": "64x64"}
# For a gateway with the built-in provider only: its model, and another name of it.
NAMES = {"atelier/sketch": {"aliases": ["house-style"]}}
SMALL_TRIAL: dict[str, Any] = {
    "models": ["atelier/sketch", "house-style"],
    "prompts": ["a pear", "a plum"],
    "parameters": SMALL,
}


async def create(
    running: RunningGateway, query: dict[str, str] | None = None, headers: dict[str, str] | None = None, **body: Any
) -> dict[str, Any]:
    """The response to a call that makes a trial, of images of two providers unless the body says otherwise."""
    usual = {"models": MODELS, "parameters": SMALL}
    call = running.call({**usual, **body}, endpoint="/v1/trials", query=query, headers=headers)
    made: dict[str, Any] = (await trials.create_trial(running.gateway, call)).json
    return made


async def create_from_file(running: RunningGateway, data: bytes, filename: str, *fields: tuple[str, str]) -> Any:
    """The response to a call that makes a trial from a file in a form."""
    form: tuple[tuple[str, str | UploadedFile], ...] = (("file", UploadedFile(data, filename)), *fields)
    call = msgspec.structs.replace(running.call(endpoint="/v1/trials"), is_form=True, form=form)
    return (await trials.create_trial(running.gateway, call)).json


async def retrieve(running: RunningGateway, trial_id: str, caller: Caller | None = None) -> Any:
    call = running.call(endpoint="/v1/trials", caller=caller, trial_id=trial_id)
    return (await trials.retrieve_trial(running.gateway, call)).json


async def record(running: RunningGateway, trial_id: str) -> TrialRecord:
    return await get_trial(running.gateway.store, running.caller.org_id, trial_id)


async def run(running: RunningGateway, **body: Any) -> Any:
    """A trial once its batch has ended."""
    made = await create(running, **body)

    async def met() -> bool:
        return (await record(running, made["id"])).status in ("completed", "cancelled")

    await running.wait_until(met, step_seconds=0.1)
    return await retrieve(running, made["id"])
