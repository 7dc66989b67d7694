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
