"""Declaring labels and their budgets over HTTP, and calls that have or lack them."""

from pathlib import Path
from typing import Any

from tests.api.http_calls import form
from tests.api.running import RunningGateway, running

IMAGES = "/compat/v1/images/generations"
IMAGE: dict[str, Any] = {"model": "atelier/sketch", "prompt": "a pear", "size": "64x64"}


async def declare(here: RunningGateway, *labels: dict[str, Any]) -> None:
    response = await here.admin("PUT", "/v1/labels", {"declared_labels": list(labels)})
    assert response.status == 200, response


async def test_declared_labels_hold_at_once_and_for_one_organization(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        refused = await here.served.call(
            "POST", IMAGES, key=here.mine.plain.key, body={**IMAGE, "labels": {"customer": "acme"}}
        )
        assert (refused.status, refused.json["error"]["param"]) == (400, "labels.customer")
        await declare(here, {"name": "customer", "required": True})
        missing = await here.served.call("POST", IMAGES, key=here.mine.plain.key, body=IMAGE)
        assert (missing.status, missing.code) == (400, "INVALID_REQUEST")
        assert missing.json["error"]["param"] == "labels.customer"
        for body, headers in (
            ({**IMAGE, "labels": {"customer": "acme"}}, {}),
            (IMAGE, {"x-service-labels": "customer=acme"}),
        ):
            made = await here.served.call("POST", IMAGES, key=here.mine.plain.key, body=body, headers=headers)
            assert made.status == 200, made
        theirs = await here.served.call("POST", f"{IMAGES}?dryRun=true", key=here.theirs.plain.key, body=IMAGE)
        assert theirs.status == 200
        listed = await here.get("/v1/requests?label.customer=acme")
        assert [record["labels"] for record in listed.json["data"]] == [{"customer": "acme"}] * 2
        page = await here.get("/v1/requests?label.customer=acme&limit=1")
        assert "label.customer=acme" in page.json["next_page_url"]
        csv = (await here.get("/v1/requests?label.customer=acme&format=csv")).body.decode()
        assert '""customer"":""acme""' in csv
        assert (await here.get("/v1/labels", here.theirs)).json["declared_labels"] == []
        assert (await here.get("/v1/requests?label.customer=acme", here.theirs)).status == 400


async def test_labels_of_a_key_cannot_be_changed_by_its_calls(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        undeclared = await here.admin("POST", "/v1/keys", {"labels": {"customer": "acme"}})
        assert (undeclared.status, undeclared.json["error"]["param"]) == (400, "labels")
        await declare(here, {"name": "customer", "required": True})
        key = (await here.admin("POST", "/v1/keys", {"name": "acme", "labels": {"customer": "acme"}})).json
        assert key["labels"] == {"customer": "acme"}
        body = {**IMAGE, "labels": {"customer": "other"}}
        made = await here.served.call("POST", IMAGES, key=key["key"], body=body)
        record = await here.get(f"/v1/requests/{made.json['id']}")
        assert record.json["labels"] == {"customer": "acme"}
        changed = await here.admin("PATCH", f"/v1/keys/{key['id']}", {"labels": None})
        assert changed.json["labels"] == {}


async def test_labels_of_a_form_are_read(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        await declare(here, {"name": "customer", "values": ["acme"]})
        params = []
        for value in (b"acme", b"other"):
            body, headers = form(
                ("model", b"atelier/clip", None),
                ("prompt", b"a pear", None),
                ("seconds", b"4", None),
                ("labels[customer]", value, None),
            )
            path = "/compat/v1/videos?dryRun=true"
            made = await here.served.call("POST", path, key=here.mine.plain.key, body=body, headers=headers)
            params.append(made.json.get("error", {}).get("param"))
        assert params == [None, "labels.customer"]


async def test_budgets_are_set_listed_and_removed(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        await declare(here, {"name": "customer", "budget": True}, {"name": "plain"})
        path = "/v1/label-budgets/customer/a%2Fb"
        made = await here.admin("PUT", path, {"usd_per_month": 5})
        assert made.json == {
            "object": "label_budget",
            "name": "customer",
            "value": "a/b",
            "usd_per_month": 5,
            "alert_percents": [80, 100],
            "spent_this_month": 0,
        }
        assert (await here.get("/v1/label-budgets")).json["data"] == [made.json]
        assert (await here.get("/v1/label-budgets", here.theirs)).json["data"] == []
        assert (await here.admin("PUT", "/v1/label-budgets/plain/a", {"usd_per_month": 5})).status == 400
        assert [(await here.admin("DELETE", path)).status for _ in range(2)] == [204, 404]
        plain = await here.served.call("PUT", path, key=here.mine.plain.key, body={"usd_per_month": 5})
        assert plain.status == 403


async def test_a_budget_holds_for_the_next_call_of_a_key_that_is_in_use(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        await declare(here, {"name": "customer", "budget": True})
        body = {**IMAGE, "labels": {"customer": "a"}}
        path = "/v1/label-budgets/customer/a"
        statuses = []
        for method, budget in ((None, None), ("PUT", {"usd_per_month": 0}), ("DELETE", None)):
            if method:
                assert (await here.admin(method, path, budget)).status in (200, 204)
            made = await here.served.call("POST", IMAGES, key=here.mine.plain.key, body=body)
            statuses.append((made.status, made.code if made.status != 200 else None))
        assert statuses == [(200, None), (429, "RATE_LIMITED"), (200, None)]
