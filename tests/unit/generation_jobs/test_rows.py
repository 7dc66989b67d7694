"""Rows of generations and attempts as typed values, and the plan as one tagged union."""

import msgspec
import pytest

from penstock.generation_jobs.rows import (
    Follow,
    Live,
    Mock,
    Plan,
    Recording,
    Replay,
    Source,
    get_generation,
    get_generation_by_key,
    list_last_attempts,
)
from penstock.schema import Fingerprint, PlannedCandidate
from tests.gateway import OpenGateway

RECORDING = Recording("rec_1", Fingerprint("video", "video-1", {"seconds": 4}, b"standard", b"strict", "strict"))


@pytest.mark.parametrize(
    "source", [Live(), Live(is_reported=True), RECORDING, Follow("req_1", RECORDING), Replay("rec_1", 5), Mock(5)]
)
def test_a_plan_is_stored_with_its_source(source: Source) -> None:
    plan = Plan((PlannedCandidate("lab", "video-1", "reel-2"),), source, forced=True)
    assert msgspec.json.decode(msgspec.json.encode(plan), type=Plan) == plan


async def test_rows_have_the_columns_of_their_tables(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        store, org_id = running.gateway.store, running.caller.org_id
        video_id = (await running.video(idempotency_key="k")).json["id"]
        unfinished = await get_generation(store, video_id, org_id)
        assert unfinished is not None
        assert (unfinished.is_unfinished, unfinished.decode_result()) == (True, None)
        await running.wait_for_request(video_id)
        row = await get_generation_by_key(store, org_id, "k")
        assert row is not None
        assert (row.id, row.is_unfinished, row.hold) == (video_id, False, 400_000_000)
        request = row.decode_request()
        result = row.decode_result()
        assert request is not None
        assert result is not None
        assert (request.values["prompt"], len(result.outputs)) == ("a train", 1)
        assert [candidate.provider for candidate in row.decode_plan().candidates] == ["lab"]
        (attempt,) = await list_last_attempts(store, video_id)
        assert (attempt.state, attempt.provider, attempt.is_open) == ("completed", "lab", False)


async def test_an_unknown_generation_is_none(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        store, org_id = running.gateway.store, running.caller.org_id
        assert await get_generation(store, "req_unknown", org_id) is None
        assert await get_generation_by_key(store, org_id, "unknown") is None
        assert await list_last_attempts(store, "req_unknown") == []
