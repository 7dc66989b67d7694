"""Headers that every call to a model may have."""

from pathlib import Path

import pytest

from penstock.accounts.key_records import FAULTS
from penstock.accounts.request_filters import Filters
from penstock.api.asgi import AsgiApp
from penstock.api.call_headers import check_call_headers
from penstock.errors import InvalidRequest, PermissionDenied
from penstock.schema import Caller
from penstock.values import OrgId
from tests.api.accounts import first_account, opened
from tests.api.raw_http import serving

ORG = OrgId("org_1")


def test_faults_need_their_scope_and_a_header_that_can_be_read() -> None:
    check_call_headers({}, Caller(ORG, "key_1"), ())
    asked = {"x-service-fault": "fal=503"}
    with pytest.raises(PermissionDenied, match="`faults` scope"):
        check_call_headers(asked, Caller(ORG, "key_1", frozenset({"admin", "operator"})), {"fal"})
    able = Caller(ORG, "key_1", frozenset({FAULTS}))
    check_call_headers(asked, able, {"fal"})
    with pytest.raises(InvalidRequest, match="no provider"):
        check_call_headers(asked, able, {"kling"})


def test_the_id_of_a_session_has_a_limit() -> None:
    check_call_headers({"x-service-session-id": "s" * 256}, Caller(ORG, "key_1"), ())
    with pytest.raises(InvalidRequest, match="256"):
        check_call_headers({"x-service-session-id": "s" * 257}, Caller(ORG, "key_1"), ())


async def test_a_drill_over_http(tmp_path: Path) -> None:
    """What is refused costs nothing; what is simulated says so, and so does its record."""
    async with opened(tmp_path) as gateway:
        account = await first_account(gateway)
        able = await gateway.keys.create_key(account.org_id, scopes=[FAULTS])
        body = {"model": "atelier/echo", "messages": [{"role": "user", "content": "hello"}]}
        async with serving(AsgiApp(gateway), gateway.settings) as served:

            async def ask(key: str, faults: str) -> tuple[int, str]:
                headers = {"x-service-fault": faults}
                response = await served.call("POST", "/compat/v1/chat/completions", key=key, body=body, headers=headers)
                return response.status, response.json.get("error", {}).get("message", "")

            assert (await ask(account.admin.key, "chat=503"))[0] == 403
            status, message = await ask(able.key, "atelier=later")
            assert (status, "lost-after-submit" in message) == (400, True)
            status, message = await ask(able.key, "atelier=503")
            assert (status, "simulated" in message) == (502, True)
            assert await ask(able.key, "video=503; fal=503") == (200, "")
        records = (await gateway.requests.list_records(account.org_id, Filters())).data
    drills = {record["status"]: record["drill"] for record in records if record["status"] != "rejected"}
    assert drills == {"upstream_failure": "atelier=503", "completed": "video=503; fal=503"}
    assert {record["cost"] for record in records if record["status"] != "completed"} == {0}
