"""Recordings as documents: out of one gateway, readable on disk, and into another whose vendor is gone."""

import copy
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.errors import InvalidRequest, NotFound
from penstock.generations import endpoints
from penstock.recordings import files as transcripts
from tests.gateway import OpenGateway, RunningGateway, sqlite_only

WISH = {"model": "picture", "prompt": "a pear", "size": "64x64"}


async def recorded(running: RunningGateway) -> Any:
    made = running.call(WISH, endpoint="/image", headers={"x-service-replay": "record"})
    answer = await endpoints.make_images(running.gateway, made)
    return await running.gateway.recordings.get(running.caller.org_id, answer.headers["x-service-replay-recording"])


@sqlite_only
async def test_a_recording_moves_to_another_organization(open_gateway: OpenGateway, tmp_path: Path) -> None:
    async with open_gateway() as running:
        row = await recorded(running)
        path = transcripts.save(tmp_path, *await transcripts.written(running.gateway.recordings, row, inline=False))
        assert sorted(one.name for one in tmp_path.glob("rec_*")) == [f"{row['id']}-0.png", f"{row['id']}.json"]
        text = path.read_text()
        assert '"prompt": "a pear"' in text
        assert running.caller.org_id not in text
        running.caller = await running.another()
        document, beside = transcripts.load(path)
        now = running.clock.now_ms()
        gateway, org_id = running.gateway, running.caller.org_id
        taken = await transcripts.taken_in(gateway.store, gateway.recordings, org_id, document, beside, now)
        assert taken != row["id"]  # somebody else has that one
        call = running.call(WISH, endpoint="/image", headers={"x-service-replay": "replay-or-error"})
        answer = await endpoints.make_images(running.gateway, call)
        assert answer.headers["x-service-replay-recording"] == taken
        assert answer.json["metadata"]["provider"] == "lab"


@sqlite_only
async def test_inside_the_document(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        row = await recorded(running)
        transcript, files = await transcripts.written(running.gateway.recordings, row, inline=True)
        assert files == []
        document = json.loads(msgspec.json.encode(transcript))
        await running.gateway.recordings.delete(running.caller.org_id, row["id"])
        gateway, now = running.gateway, running.clock.now_ms()
        taken = await transcripts.taken_in(gateway.store, gateway.recordings, running.caller.org_id, document, {}, now)
        assert taken == row["id"]
        again, _ = await transcripts.written(
            gateway.recordings, await gateway.recordings.get(running.caller.org_id, taken), inline=True
        )
        assert msgspec.structs.replace(again, recorded_at="") == msgspec.structs.replace(transcript, recorded_at="")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"penstock_recording": 2}, "knows 1"),
        ({"kind": "sound"}, "knows 1"),
        ({"standard": "xyz"}, "not a recording"),
        ({"files": []}, "1 to 10 files"),
        ({"files": [{"content_type": "image/png", "data": "?"}]}, "not base64"),
        ({"files": [{"content_type": "image/jpeg", "data": "iVBORw0KGgo="}]}, "not image/jpeg"),
        ({"files": [{"content_type": "image/png", "file": "gone.png"}]}, "not there"),
        ({"duration_ms": "long"}, "not a recording"),
    ],
)
@sqlite_only
async def test_what_is_not_a_recording_is_refused(
    open_gateway: OpenGateway, change: dict[str, Any], words: str
) -> None:
    async with open_gateway() as running:
        transcript, _ = await transcripts.written(running.gateway.recordings, await recorded(running), inline=True)
        document = {**copy.deepcopy(json.loads(msgspec.json.encode(transcript))), **change}
        gateway = running.gateway
        with pytest.raises(InvalidRequest, match=words):
            await transcripts.taken_in(gateway.store, gateway.recordings, running.caller.org_id, document, {}, 1)


def test_names_that_lead_elsewhere_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    inner = tmp_path / "recordings"
    inner.mkdir()
    (inner / "x.json").write_text(json.dumps({"files": [{"file": "../secret.txt"}, {"file": str(tmp_path)}]}))
    _, beside = transcripts.load(inner / "x.json")
    assert beside == {}


@sqlite_only
async def test_strangers_recordings_do_not_exist(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        row = await recorded(running)
        stranger = await running.another()
        with pytest.raises(NotFound):
            await running.gateway.recordings.get(stranger.org_id, row["id"])
        with pytest.raises(NotFound):
            await running.gateway.recordings.delete(stranger.org_id, row["id"])


@sqlite_only
async def test_pages_both_ways(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        ids = []
        for _ in range(5):
            running.clock.advance(1)
            ids.append((await recorded(running))["id"])
        newest = ids[::-1]
        replay, org = running.gateway.recordings, running.caller.org_id
        first = await replay.page(org, 2)
        assert ([row["id"] for row in first.data], first.previous_cursor) == (newest[:2], None)
        second = await replay.page(org, 2, starting_after=first.next_cursor)
        assert [row["id"] for row in second.data] == newest[2:4]
        back = await replay.page(org, 2, ending_before=second.previous_cursor)
        assert [row["id"] for row in back.data] == newest[:2]
        last = await replay.page(org, 2, starting_after=second.next_cursor)
        assert ([row["id"] for row in last.data], last.next_cursor) == (newest[4:], None)
