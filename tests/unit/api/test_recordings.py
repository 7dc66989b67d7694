"""Recordings over HTTP: made by a header, listed, read, carried away, brought back and deleted."""

import pytest

from penstock.accounts.orgs import create_org
from tests.api.http_calls import Visit, shaped, visiting
from tests.gateway import OpenGateway, sqlite_only

pytestmark = sqlite_only

WISH = {"model": "picture", "prompt": "a pear", "size": "64x64"}


async def made(visit: Visit, mode: str = "record") -> str:
    said = await visit.ask("POST", "/compat/v1/images/generations", WISH, headers={"x-service-replay": mode})
    shaped("ImageResult", said)
    return said.headers["x-service-replay-recording"]


async def test_a_recording_is_listed_retrieved_and_deleted(open_gateway: OpenGateway) -> None:
    async with visiting(open_gateway) as visit:
        first, second = await made(visit), await made(visit)
        listed = shaped("RecordingList", await visit.ask("GET", "/v1/recordings?limit=1"))
        assert {listed["data"][0]["id"]} < {first, second}
        rest = shaped("RecordingList", await visit.ask("GET", listed["next_page_url"]))
        assert {listed["data"][0]["id"], rest["data"][0]["id"]} == {first, second}
        assert shaped("Recording", await visit.ask("GET", f"/v1/recordings/{first}"))["model"] == "picture"
        assert shaped("RecordingDeleted", await visit.ask("DELETE", f"/v1/recordings/{first}"))["media_deleted"] == 1
        assert (await visit.ask("GET", f"/v1/recordings/{first}")).code == "NOT_FOUND"
        assert (await visit.ask("DELETE", f"/v1/recordings/{first}")).code == "NOT_FOUND"


async def test_a_recording_is_exported_and_imported_by_another_organization(open_gateway: OpenGateway) -> None:
    async with visiting(open_gateway) as visit:
        recording = await made(visit)
        carried = await visit.ask("GET", f"/v1/recordings/{recording}/export")
        assert carried.headers["content-disposition"] == f'attachment; filename="{recording}.json"'
        transcript = shaped("RecordingFile", carried)
        org = await create_org(visit.running.gateway.store, visit.running.clock, "Other", "prepaid")
        key = (await visit.running.gateway.keys.create_key(org.id)).key
        brought = shaped("Recording", await visit.ask("POST", "/v1/recordings", transcript, key=key))
        assert brought["model"] == "picture"
        headers = {"x-service-replay": "replay-or-error"}
        again = await visit.ask("POST", "/compat/v1/images/generations", WISH, key=key, headers=headers)
        assert (again.status, again.headers["x-service-replay-status"]) == (200, "replayed")
        assert len(visit.running.lab.images) == 1


async def test_recordings_of_other_organizations_are_not_found(open_gateway: OpenGateway) -> None:
    async with visiting(open_gateway) as visit:
        recording = await made(visit)
        org = await create_org(visit.running.gateway.store, visit.running.clock, "Other", "prepaid")
        key = (await visit.running.gateway.keys.create_key(org.id)).key
        for method, path in (("GET", "{}"), ("GET", "{}/export"), ("DELETE", "{}"), ("GET", "?starting_after={}")):
            where = f"/v1/recordings/{path}".replace("/?", "?").format(recording)
            assert (await visit.ask(method, where, key=key)).code == "NOT_FOUND"
        assert shaped("RecordingList", await visit.ask("GET", "/v1/recordings", key=key))["data"] == []


@pytest.mark.parametrize("body", [{}, {"penstock_recording": 1}, {"files": [{"data": "x"}]}])
async def test_an_invalid_recording_file_is_refused(open_gateway: OpenGateway, body: dict[str, object]) -> None:
    async with visiting(open_gateway) as visit:
        assert (await visit.ask("POST", "/v1/recordings", body)).code == "INVALID_REQUEST"
