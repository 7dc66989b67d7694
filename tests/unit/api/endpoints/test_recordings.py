"""Recordings over HTTP: made by a header, listed, retrieved, exported, imported and deleted."""

from typing import Any

import pytest

from penstock.accounts.orgs import create_org
from tests.api.http_calls import ServedApi, checked_json, served_api
from tests.gateway import OpenGateway, sqlite_only

pytestmark = sqlite_only

BODY = {"model": "image-1", "prompt": "a pear", "size": "64x64"}


async def made(api: ServedApi, mode: str = "record") -> str:
    response = await api.call("POST", "/compat/v1/images/generations", BODY, headers={"x-service-replay": mode})
    checked_json("ImageResult", response)
    return response.headers["x-service-replay-recording"]


async def test_a_recording_is_listed_retrieved_and_deleted(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        first, second = await made(api), await made(api)
        listed = checked_json("RecordingList", await api.call("GET", "/v1/recordings?limit=1"))
        assert {listed["data"][0]["id"]} < {first, second}
        rest = checked_json("RecordingList", await api.call("GET", listed["next_page_url"]))
        assert {listed["data"][0]["id"], rest["data"][0]["id"]} == {first, second}
        assert checked_json("Recording", await api.call("GET", f"/v1/recordings/{first}"))["model"] == "image-1"
        assert (
            checked_json("RecordingDeleted", await api.call("DELETE", f"/v1/recordings/{first}"))["media_deleted"] == 1
        )
        assert (await api.call("GET", f"/v1/recordings/{first}")).code == "NOT_FOUND"
        assert (await api.call("DELETE", f"/v1/recordings/{first}")).code == "NOT_FOUND"


async def test_a_recording_is_exported_and_imported_by_another_organization(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        recording = await made(api)
        carried = await api.call("GET", f"/v1/recordings/{recording}/export")
        assert carried.headers["content-disposition"] == f'attachment; filename="{recording}.json"'
        recording_file = checked_json("RecordingFile", carried)
        org = await create_org(api.running.gateway.store, api.running.clock, "Other", "prepaid")
        key = (await api.running.gateway.keys.create_key(org.id)).key
        brought = checked_json("Recording", await api.call("POST", "/v1/recordings", recording_file, key=key))
        assert brought["model"] == "image-1"
        carried_on = await api.call("GET", f"/v1/recordings/{brought['id']}/export", key=key)
        assert (recording_file["cost"], checked_json("RecordingFile", carried_on)["cost"]) == ("0.04", "0.04")
        headers = {"x-service-replay": "replay-or-error"}
        again = await api.call("POST", "/compat/v1/images/generations", BODY, key=key, headers=headers)
        assert (again.status, again.headers["x-service-replay-status"]) == (200, "replayed")
        assert len(api.running.lab.images) == 1


async def test_a_recording_without_its_file_is_not_found(open_gateway: OpenGateway) -> None:
    """Its export is refused, instead of ending in the middle: another call may be deleting it."""
    async with served_api(open_gateway) as api:
        recording = await made(api)
        (file,) = [file for file in await api.running.storage.list_files() if "rfl_" in file.key]
        await api.running.storage.delete(file.key)
        assert (await api.call("GET", f"/v1/recordings/{recording}/export")).code == "NOT_FOUND"
        headers = {"x-service-replay": "replay-or-error"}
        replay = await api.call("POST", "/compat/v1/images/generations", BODY, headers=headers)
        assert (replay.status, replay.code) == (404, "RECORDING_NOT_FOUND")
        await api.call("DELETE", f"/v1/recordings/{recording}")


async def test_recordings_of_other_organizations_are_not_found(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        recording = await made(api)
        org = await create_org(api.running.gateway.store, api.running.clock, "Other", "prepaid")
        key = (await api.running.gateway.keys.create_key(org.id)).key
        for method, path in (("GET", "{}"), ("GET", "{}/export"), ("DELETE", "{}"), ("GET", "?starting_after={}")):
            where = f"/v1/recordings/{path}".replace("/?", "?").format(recording)
            assert (await api.call(method, where, key=key)).code == "NOT_FOUND"
        assert checked_json("RecordingList", await api.call("GET", "/v1/recordings", key=key))["data"] == []


@pytest.mark.parametrize("body", [{}, {"penstock_recording": 1}, {"files": [{"data": "x"}]}])
async def test_an_invalid_recording_file_is_refused(open_gateway: OpenGateway, body: dict[str, object]) -> None:
    async with served_api(open_gateway) as api:
        assert (await api.call("POST", "/v1/recordings", body)).code == "INVALID_REQUEST"


@pytest.mark.parametrize(
    "change",
    [
        {"duration_ms": 2**63},
        {"duration_ms": 10**17},
        {"task": "sound"},
        {"request": {"prompt": "p" * 100_000}},
        {"files": [{"content_type": "image/png", "data": "é" * 8}]},
    ],
)
async def test_an_import_out_of_range_is_refused(open_gateway: OpenGateway, change: dict[str, Any]) -> None:
    async with served_api(open_gateway) as api:
        document = (await api.call("GET", f"/v1/recordings/{await made(api)}/export")).json
        response = await api.call("POST", "/v1/recordings", {**document, **change})
        assert (response.status, response.code) == (400, "INVALID_REQUEST")


async def test_lists_read_neither_results_nor_long_requests(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        first, second = await made(api), await made(api)
        await api.running.change(
            f"UPDATE recordings SET request = CAST('{{\"prompt\": \"{'p' * 70_000}\"}}' AS BLOB) WHERE id = '{first}'"  # noqa: S608
        )
        listed = checked_json("RecordingList", await api.call("GET", "/v1/recordings"))
        assert {row["id"]: row["request"] and row["request"]["prompt"] for row in listed["data"]} == {
            first: None,
            second: "a pear",
        }
        rows = await api.running.gateway.store.all(
            "list_older_recordings",
            org_id=api.running.caller.org_id,
            low="rec_",
            high="rec_~",
            limit=9,
            max_bytes=65536,
        )
        assert all("result" not in row for row in rows)
        whole = checked_json("Recording", await api.call("GET", f"/v1/recordings/{first}"))
        assert len(whole["request"]["prompt"]) == 70_000
