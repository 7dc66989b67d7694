"""Batches over HTTP: made, listed, changed and read by their own organization only."""

import asyncio
import json
from pathlib import Path

from tests.api.http_calls import form
from tests.api.running import running

IMAGE = {"model": "atelier/sketch", "prompt": "a pear", "size": "64x64"}
BATCH = {"endpoint": "/v1/images/generations", "requests": [IMAGE, IMAGE], "start": False}


async def test_a_batch_is_made_listed_and_changed_by_its_organization_only(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        key = here.mine.plain.key
        made = await here.served.call("POST", "/v1/batches", key=key, body=BATCH)
        assert (made.status, made.json["status"]) == (200, "paused")
        path = f"/v1/batches/{made.json['id']}"
        assert [batch["id"] for batch in (await here.get("/v1/batches")).json["data"]] == [made.json["id"]]
        assert (await here.get("/v1/batches", here.theirs)).json["data"] == []
        for method, more in (("GET", ""), ("GET", "/results"), ("POST", "/pause"), ("POST", "/cancel")):
            theirs = await here.served.call(method, path + more, key=here.theirs.plain.key)
            assert (theirs.status, theirs.code) == (404, "NOT_FOUND")
        resumed = await here.served.call("POST", f"{path}/resume", key=key, body={"max_cost": 5, "concurrency": 2})
        assert (resumed.json["status"], resumed.json["max_cost"], resumed.json["concurrency"]) == ("in_progress", 5, 2)
        paused = await here.served.call("POST", f"{path}/pause", key=key)
        assert (paused.json["status"], paused.json["reason"]) == ("paused", "caller")
        again = await here.served.call("POST", f"{path}/pause", key=key)
        assert (again.status, again.code) == (409, "CONFLICT")
        assert (await here.served.call("POST", f"{path}/cancel", key=key)).json["status"] == "cancelling"


async def test_a_file_is_sent_in_a_form_and_a_refusal_lists_its_rows(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        table = b"prompt,n\na pear,1\na plum,77\n"
        defaults = json.dumps({"model": "atelier/sketch"}).encode()
        endpoint = b"/v1/images/generations"
        body, headers = form(("file", table, "rows.csv"), ("endpoint", endpoint, None), ("defaults", defaults, None))
        refused = await here.served.call("POST", "/v1/batches", key=here.mine.plain.key, body=body, headers=headers)
        assert (refused.status, refused.json["error"]["param"]) == (400, "n")
        assert [(row["row"], row["column"]) for row in refused.json["error"]["rows"]] == [(2, "n")]


async def test_a_file_that_is_sent_again_with_its_key_makes_one_batch_and_another_file_none(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        answers = []
        for table in (b"prompt\na pear\n", b"prompt\na pear\n", b"prompt\na plum\n"):
            defaults = json.dumps({"model": "atelier/sketch"}).encode()
            endpoint = b"/v1/images/generations"
            body, headers = form(("file", table, "r.csv"), ("endpoint", endpoint, None), ("defaults", defaults, None))
            headers["idempotency-key"] = "k"
            key = here.mine.plain.key
            answers.append(await here.served.call("POST", "/v1/batches", key=key, body=body, headers=headers))
        assert [answer.status for answer in answers] == [200, 200, 422]
        assert answers[0].json["id"] == answers[1].json["id"]


async def test_results_come_as_lines(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        made = await here.served.call("POST", "/v1/batches", key=here.mine.plain.key, body=BATCH)
        found = await here.get(f"/v1/batches/{made.json['id']}/results")
        assert (found.status, found.body) == (200, b"")
        assert found.headers["content-type"] == "application/jsonl"


async def test_calls_with_one_idempotency_key_at_the_same_time_make_one_batch(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        sent = [
            here.served.call(
                "POST", "/v1/batches", key=here.mine.plain.key, body=BATCH, headers={"idempotency-key": "k"}
            )
            for _ in range(20)
        ]
        found = await asyncio.gather(*sent)
        assert {each.status for each in found} <= {200, 409}
        assert len({each.json["id"] for each in found if each.status == 200}) == 1
        assert len((await here.get("/v1/batches")).json["data"]) == 1


async def test_an_idempotency_key_makes_one_batch_and_a_refused_call_does_not_use_it(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        headers = {"idempotency-key": "k1"}
        key = here.mine.plain.key
        bad = {**BATCH, "requests": [{**IMAGE, "n": 99}]}
        refused = await here.served.call("POST", "/v1/batches", key=key, body=bad, headers=headers)
        assert refused.status == 400
        first = await here.served.call("POST", "/v1/batches", key=key, body=BATCH, headers=headers)
        again = await here.served.call("POST", "/v1/batches", key=key, body=BATCH, headers=headers)
        assert (again.json["id"], again.headers["idempotent-replayed"]) == (first.json["id"], "true")
        other = {**BATCH, "requests": [IMAGE]}
        refused = await here.served.call("POST", "/v1/batches", key=key, body=other, headers=headers)
        assert (refused.status, refused.json["error"]["param"]) == (422, "idempotency_key")
        theirs = await here.served.call("POST", "/v1/batches", key=here.theirs.plain.key, body=BATCH, headers=headers)
        assert theirs.json["id"] != first.json["id"]
        assert len((await here.get("/v1/batches")).json["data"]) == 1
