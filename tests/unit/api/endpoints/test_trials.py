"""Trials over HTTP: made, listed, read and deleted by their own organization only."""

import asyncio
import json
from pathlib import Path

from tests.api.http_calls import form
from tests.api.running import running
from tests.unit.trials.trial_calls import NAMES, SMALL_TRIAL

MODELS = SMALL_TRIAL["models"]


async def test_a_trial_is_made_listed_and_deleted_by_its_organization_only(tmp_path: Path) -> None:
    async with running(tmp_path, models=NAMES) as here:
        key = here.mine.plain.key
        estimate = await here.served.call("POST", "/v1/trials?dryRun=true", key=key, body=SMALL_TRIAL)
        assert (estimate.status, estimate.json["object"], estimate.json["rows"]) == (200, "trial.estimate", 4)
        made = await here.served.call("POST", "/v1/trials", key=key, body=SMALL_TRIAL)
        assert (made.status, made.json["status"], made.json["estimated_cost"]) == (
            200,
            "in_progress",
            estimate.json["estimated_cost"],
        )
        path = f"/v1/trials/{made.json['id']}"
        assert [trial["id"] for trial in (await here.get("/v1/trials")).json["data"]] == [made.json["id"]]
        assert (await here.get("/v1/trials", here.theirs)).json["data"] == []
        for method in ("GET", "DELETE"):
            theirs = await here.served.call(method, path, key=here.theirs.plain.key)
            assert (theirs.status, theirs.code) == (404, "NOT_FOUND")
        assert [result["model"] for result in (await here.get(path)).json["results"]] == MODELS
        assert (await here.served.call("DELETE", path, key=key)).status == 204
        assert (await here.get(path)).status == 404


async def test_calls_with_one_idempotency_key_at_the_same_time_make_one_trial(tmp_path: Path) -> None:
    async with running(tmp_path, models=NAMES) as here:
        key, headers = here.mine.plain.key, {"idempotency-key": "k1"}
        calls = (here.served.call("POST", "/v1/trials", key=key, body=SMALL_TRIAL, headers=headers) for _ in range(20))
        found = await asyncio.gather(*calls)
        assert {each.status for each in found} <= {200, 409}
        assert len({each.json["id"] for each in found if each.status == 200}) == 1
        assert len((await here.get("/v1/trials")).json["data"]) == 1
        assert len((await here.get("/v1/batches")).json["data"]) == 1


async def test_a_file_is_sent_in_a_form_and_a_refusal_lists_prompts(tmp_path: Path) -> None:
    async with running(tmp_path, models=NAMES) as here:
        table = b"prompt,size\na pear,64x64\na plum,no\n"
        parts = [(name, value.encode(), None) for name, value in (("models", MODELS[0]), ("models", MODELS[1]))]
        body, headers = form(("file", table, "prompts.csv"), *parts)
        refused = await here.served.call("POST", "/v1/trials", key=here.mine.plain.key, body=body, headers=headers)
        assert (refused.status, refused.json["error"]["param"]) == (400, "size"), json.dumps(refused.json)
        assert [row["row"] for row in refused.json["error"]["rows"]] == [2, 2]
