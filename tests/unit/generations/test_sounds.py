"""The objects of kept sounds, in each state, and their lists."""

import msgspec
import pytest

from penstock.errors import Conflict, NotFound
from penstock.generations import sounds
from penstock.speech.endpoint import create_speech
from tests.fake_providers import faults
from tests.gateway import OpenGateway, RunningGateway, sqlite_only


async def start(running: RunningGateway, text: str = "Hello there.") -> str:
    fields = {"model": "lab/voice", "input": text, "voice": "alloy"}
    call = running.call(fields, endpoint="/compat/v1/audio/speech", headers={"prefer": "respond-async"})
    return str((await create_speech(running.gateway, call)).json["id"])


@sqlite_only
async def test_an_unfinished_sound_has_an_estimate_and_no_content(open_gateway: OpenGateway) -> None:
    gate = faults.Gate()
    async with open_gateway() as running:
        running.lab.speeches.next(gate)
        job = await start(running)
        await running.lab.speeches.reached(1)
        response = await sounds.sound(running.gateway, running.call(id=job))
        assert response.json["status"] in ("queued", "in_progress")
        assert response.json["metadata"]["cost_estimate"] > 0
        assert response.json["output"] is None
        assert "openai-poll-after-ms" in response.headers
        with pytest.raises(Conflict):
            await sounds.sound_content(running.gateway, running.call(id=job))
        gate.open()
        await running.wait_for_request(job)


@sqlite_only
async def test_sounds_are_listed_in_pages_in_both_orders(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        made = []
        for number in range(3):
            made.append(await start(running, f"Number {number}."))
            assert (await running.wait_for_request(made[-1]))["status"] == "completed"
        await running.video()
        page = (await sounds.list_sounds(running.gateway, running.call(), 2, None, ascending=True)).json
        assert [each["id"] for each in map(decoded, page["data"])] == made[:2]
        assert (page["object"], page["has_more"], page["last_id"]) == ("list", True, made[1])
        rest = (await sounds.list_sounds(running.gateway, running.call(), 2, made[1], ascending=True)).json
        assert [each["id"] for each in map(decoded, rest["data"])] == made[2:]
        newest = (await sounds.list_sounds(running.gateway, running.call(), 1, None, ascending=False)).json
        assert newest["first_id"] == made[2]
        with pytest.raises(NotFound):
            await sounds.list_sounds(running.gateway, running.call(), 2, "req_none", ascending=True)


@sqlite_only
async def test_a_sound_that_has_expired_is_gone(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        job = await start(running)
        await running.wait_for_request(job)
        await running.change("UPDATE generations SET expires_at_ms = 1")
        assert (await sounds.sound(running.gateway, running.call(id=job))).json["output"] is None
        with pytest.raises(NotFound):
            await sounds.sound_content(running.gateway, running.call(id=job))


def decoded(raw: object) -> dict[str, str]:
    return dict(msgspec.json.decode(msgspec.json.encode(raw)))
