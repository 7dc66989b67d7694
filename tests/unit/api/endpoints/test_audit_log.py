"""The audit log over HTTP: what each act leaves behind, who may read it, and its exports."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from penstock.audit_log import verify_chain
from tests.api.running import RunningGateway, running


async def events(here: RunningGateway, query: str = "") -> list[dict[str, Any]]:
    response = await here.admin("GET", f"/v1/audit?limit=100{query}")
    assert response.status == 200, response
    found: list[dict[str, Any]] = response.json["data"]
    return found


@pytest.mark.parametrize(
    ("action", "method", "path", "body", "after"),
    [
        ("key.created", "POST", "/v1/keys", {"name": "a", "usd_per_day": 2.5}, {"name": "a", "usd_per_day": "2.5"}),
        ("key.changed", "PATCH", "/v1/keys/{key}", {"models": ["x/*"]}, {"models": ["x/*"]}),
        ("key.revoked", "DELETE", "/v1/keys/{key}", None, None),
        ("organization.created", "POST", "/v1/orgs", {"name": "B"}, {"name": "B", "billing_type": "prepaid"}),
        ("organization.changed", "PATCH", "/v1/orgs/{org}", {"usd_per_month": 5}, {"usd_per_month": "5"}),
        ("webhook_secret.rotated", "POST", "/v1/webhooks/secret/rotate", {}, {"secret": "changed"}),
        (
            "labels.declared",
            "PUT",
            "/v1/labels",
            {"declared_labels": [{"name": "team"}]},
            {"team": {"name": "team", "required": False, "values": None, "budget": False}},
        ),
        ("costs.exported", "GET", "/v1/usage/focus", None, None),
        ("requests.exported", "GET", "/v1/requests?format=csv", None, None),
    ],
)
async def test_an_act_names_who_did_what_from_where(
    tmp_path: Path, action: str, method: str, path: str, body: Any, after: Any
) -> None:
    async with running(tmp_path) as here:
        made = await here.admin(method, path.format(key=here.mine.plain.id, org=here.mine.org_id), body)
        assert made.status == 200, made
        [event] = await events(here, f"&action={action}&actor={here.mine.admin.id}")
        assert (event["address"], event["request_id"]) == ("127.0.0.1", made.headers["x-request-id"])
        if after is not None:
            assert event["after"] == after
        assert (await verify_chain(here.gateway.store)).problem is None


async def test_credit_and_accounts_are_in_the_log_without_credentials(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        await here.admin("POST", f"/v1/orgs/{here.mine.org_id}/credits", {"usd": 5, "note": "invoice 7"})
        [credit] = await events(here, f"&action=credit.added&actor={here.mine.admin.id}")
        assert (credit["target"], credit["after"]["amount"]) == (here.mine.org_id, "5")
        secret = "fal-canary-of-the-second-account"
        made = (await here.admin("POST", "/v1/accounts", {"provider": "fal", "credential": secret})).json
        await here.admin("POST", f"/v1/accounts/{made['id']}/rotate", {"credential": f"{secret}-2"})
        await here.admin("DELETE", f"/v1/accounts/{made['id']}")
        of_account = await events(here, f"&target={made['id']}")
        actions = ["account.erased", "account.deleted", "account.rotated", "account.added"]
        assert [event["action"] for event in of_account] == actions
        assert secret not in json.dumps(of_account)


async def test_refused_acts_leave_nothing(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        before = len(await events(here))
        assert (await here.admin("POST", "/v1/keys", {"usd_per_day": -1})).status == 400
        assert (await here.admin("DELETE", f"/v1/keys/{here.theirs.plain.id}")).status == 404
        assert (await here.admin("POST", "/v1/orgs", {"name": ""})).status == 400
        assert len(await events(here)) == before


async def test_admins_read_their_organization_and_operators_everything(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        theirs = await here.served.call("GET", "/v1/audit", key=here.theirs.admin.key)
        assert {event["org_id"] for event in theirs.json["data"]} == {here.theirs.org_id}
        both = {event["org_id"] for event in await events(here)}
        assert both >= {here.mine.org_id, here.theirs.org_id}
        assert {event["org_id"] for event in await events(here, f"&org_id={here.theirs.org_id}")} == {
            here.theirs.org_id
        }
        asked = f"/v1/audit?org_id={here.mine.org_id}"
        assert (await here.served.call("GET", asked, key=here.theirs.admin.key)).status == 403
        assert (await here.get("/v1/audit")).status == 403
        foreign = next(event["id"] for event in await events(here) if event["org_id"] == here.mine.org_id)
        cursor = f"/v1/audit?starting_after={foreign}"
        assert (await here.served.call("GET", cursor, key=here.theirs.admin.key)).status == 404


async def test_pages_and_exports_have_the_same_events(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        first = (await here.admin("GET", "/v1/audit?limit=2")).json
        second = (await here.admin("GET", first["next_page_url"])).json
        listed = [event["id"] for event in first["data"] + second["data"]]
        assert listed == sorted(listed, reverse=True)
        assert first["head"]["id"] == listed[0]
        lines = (await here.admin("GET", "/v1/audit?format=jsonl")).body.decode().splitlines()
        rows = list(csv.DictReader(io.StringIO((await here.admin("GET", "/v1/audit?format=csv")).body.decode())))
        exported = [json.loads(line) for line in lines]
        assert [row["hash"] for row in rows[:-1]] == [event["hash"] for event in exported]
        assert exported[0]["previous"] == "0" * 64
        assert exported[-1]["action"] == "audit_log.exported"
        assert (await here.admin("GET", "/v1/audit?format=csv&limit=2")).status == 400


async def test_reading_payloads_of_another_key_is_an_act(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        [request] = await here.refused(1)
        path = f"/v1/requests/{request}/payloads"
        assert (await here.get(path)).status == 200
        assert await events(here, "&action=payloads.read") == []
        assert (await here.admin("GET", path)).status == 200
        [event] = await events(here, "&action=payloads.read")
        assert (event["target"], event["actor"]) == (request, here.mine.admin.id)
