"""Accounts at vendors over HTTP: for operators, and never with a credential in the response."""

from pathlib import Path
from typing import Any

from tests.api.running import running

CREDENTIAL = "fal-canary-of-the-second-account"


async def test_operators_manage_accounts_and_nobody_sees_a_credential(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        operator = here.mine.admin.key

        async def call(method: str, path: str, body: object = None) -> tuple[int, Any]:
            response = await here.served.call(method, path, key=operator, body=body)
            assert CREDENTIAL not in response.body.decode()
            return response.status, response.json if response.body else None

        status, added = await call("POST", "/v1/accounts", {"provider": "fal", "credential": CREDENTIAL, "name": "eu"})
        assert (status, added["last_four"], added["status"]) == (200, "ount", "on")
        path = f"/v1/accounts/{added['id']}"
        assert (await call("POST", "/v1/accounts", {"provider": "fal", "credential": CREDENTIAL}))[0] == 409
        assert (await call("PATCH", path, {"weight": 7, "status": "off"}))[1]["weight"] == 7
        assert (await call("POST", f"{path}/rotate", {"credential": "another-fal-credential-x"}))[1]["version"] == 2
        assert [each["id"] for each in (await call("GET", "/v1/accounts"))[1]["data"]] == [added["id"]]
        assert (await call("DELETE", path)) == (204, None)
        assert (await call("DELETE", path))[0] == 404
        assert (await call("PATCH", path, {"weight": 7}))[0] == 404
        for bad in ({"provider": "fal"}, {"provider": "x", "credential": "y"}, {"credential": "y"}):
            assert (await call("POST", "/v1/accounts", bad))[0] == 400
        for key in (here.mine.plain.key, here.theirs.admin.key):
            assert (await here.served.call("GET", "/v1/accounts", key=key)).status == 403


async def test_admins_manage_the_accounts_of_their_organization_where_the_operator_allows_it(tmp_path: Path) -> None:
    async with running(tmp_path, own_accounts=("fal",)) as here:

        async def call(key: str, method: str, path: str, body: object = None) -> tuple[int, Any]:
            response = await here.served.call(method, path, key=key, body=body)
            assert CREDENTIAL not in response.body.decode()
            return response.status, response.json if response.body else None

        theirs, mine, operator = here.theirs.admin.key, here.mine.plain.key, here.mine.admin.key
        body = {"provider": "fal", "credential": CREDENTIAL}
        assert (await call(mine, "POST", "/v1/accounts", body))[0] == 403, "it has no scope"
        status, added = await call(theirs, "POST", "/v1/accounts", body)
        assert status == 200
        assert added["org_id"].startswith("org_")
        path = f"/v1/accounts/{added['id']}"
        for forbidden in ({"fee_percent": 0}, {"fee_percent": None}):
            assert (await call(theirs, "PATCH", path, forbidden))[0] == 403
        assert (await call(theirs, "POST", "/v1/accounts", {**body, "org_id": "org_1"}))[0] == 403
        assert (await call(operator, "PATCH", path, {"fee_percent": 5}))[1]["fee_percent"] == 5
        [listed] = (await call(theirs, "GET", "/v1/accounts"))[1]["data"]
        assert (listed["id"], listed["fee_percent"]) == (added["id"], 5)
        shared = (
            await call(operator, "POST", "/v1/accounts", {"provider": "fal", "credential": "another-one-of-fal"})
        )[1]
        hidden = f"/v1/accounts/{shared['id']}"
        for method, where, what in (
            ("PATCH", hidden, {"weight": 3}),
            ("POST", f"{hidden}/rotate", {"credential": "fal-key-of-nobody-at-all"}),
            ("DELETE", hidden, None),
        ):
            assert (await call(theirs, method, where, what))[0] == 404
        assert {account["id"] for account in (await call(operator, "GET", "/v1/accounts"))[1]["data"]} == {
            added["id"],
            shared["id"],
        }
        events = (await call(theirs, "GET", "/v1/audit"))[1]["data"]
        assert {event["target"] for event in events if event["action"].startswith("account.")} == {added["id"]}
        assert (await call(theirs, "DELETE", path))[0] == 204
