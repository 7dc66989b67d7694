"""kill -9 while speech, effects, music and transcripts are made: each job ends once, and is charged at most once."""

import asyncio
import signal
from base64 import b64encode
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests import sounds
from tests.fake_providers.scripted import CHARACTER_USD, HEARD_SECOND_USD, SOUND_SECOND_USD
from tests.faults.rig import CREDIT, EndedEarly, Rig, Running, rigged, until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]

BATCH = 4  # of each kind
SECONDS = 2
SPEECH = "/compat/v1/audio/speech"
SOUNDS = "/compat/v1/audio/generations"
TRANSCRIPTS = "/compat/v1/audio/transcriptions"
AGAIN = ("speech", "transcription")  # what is asked of the provider again
# Where the process dies, and at which passage.
PLACES = (
    "accept.after_commit=kill:5",
    "submit.intent_committed=kill:6",
    "submit.response_read=kill:2",
    "fetch.mid=kill:2",
    "media.after_fsync=kill:2",
    "settle.in_tx=kill:2",
    "settle.after_commit=kill:2",
)


async def promise(rig: Rig, served: Running, name: str) -> list[str]:
    """Ask for speech, sounds and transcripts at the same time; the ids of those that were accepted."""
    heard_data = b64encode(sounds.wav(SECONDS)).decode()

    async def ask(number: int) -> str | None:
        spoken = {"model": "lab/voice", "input": f"{name}, text {number}.", "voice": "alloy"}
        sound = {"model": "lab/sound", "prompt": f"{name}, sound {number}", "seconds": SECONDS}
        heard = {"model": "lab/listen", "input_audio": {"data": heard_data, "format": "wav"}}
        try:
            if number % 3 == 2:
                said = await served.ask("POST", TRANSCRIPTS, heard, prefer="respond-async")
            elif number % 3:
                said = await served.ask("POST", SPEECH, spoken, prefer="respond-async")
            else:
                said = await served.ask("POST", SOUNDS, sound)
        except (ConnectionError, EOFError):
            return None  # cut off: nothing was promised
        assert said.status == 202, said
        return str(said.json["id"])

    found = await asyncio.gather(*(ask(number) for number in range(3 * BATCH)))
    return [sound_id for sound_id in found if sound_id]


async def test_kills_while_sounds_are_made(tmp_path: Path, database: str) -> None:
    promised: list[str] = []
    async with rigged(tmp_path, database) as rig:
        for place in PLACES:
            try:
                async with rig.serve(place) as served:
                    with suppress(OSError):
                        promised += await promise(rig, served, place)
                    assert await served.died() == -signal.SIGKILL, place
            except EndedEarly:
                assert rig.last_code == -signal.SIGKILL, place
            assert await rig.breaches() == [], place
        async with rig.serve() as served:
            await until(lambda: has_ended(rig), 120)
            await check(rig, served, promised)
            assert await served.stop() == 0


async def has_ended(rig: Rig) -> bool:
    return not await rig.rows("SELECT id FROM generations WHERE status IN ('queued', 'in_progress') LIMIT 1")


async def listed(served: Running, path: str) -> dict[str, Any]:
    page = (await served.ask("GET", f"{path}?limit=100&order=asc")).json
    assert not page["has_more"]
    return {sound["id"]: sound for sound in page["data"]}


async def check(rig: Rig, served: Running, promised: list[str]) -> None:
    shown = {**await listed(served, SOUNDS), **await listed(served, TRANSCRIPTS)}
    assert set(promised) <= shown.keys(), "what was promised is there"
    records = {row["id"]: row for row in await rig.rows("SELECT id, kind, status, cost FROM requests")}
    due = Decimal(0)
    for sound_id, sound in shown.items():
        kind = records[sound_id]["kind"]
        code = (sound["error"] or {}).get("code")
        if kind in AGAIN:
            assert sound["status"] == "completed", "speech is spoken again, and a sound is heard again"
        else:
            assert sound["status"] == "completed" or code == "UPSTREAM_OUTCOME_UNKNOWN"
        prices = {
            "sound": SOUND_SECOND_USD * SECONDS,
            "speech": CHARACTER_USD * len(sound["prompt"]),
            "transcription": HEARD_SECOND_USD * SECONDS,
        }
        usd = prices[kind] if sound["status"] == "completed" else Decimal(0)
        assert Decimal(records[sound_id]["cost"]).scaleb(-9) == usd
        due += usd
        if sound["output"]:
            path = TRANSCRIPTS if kind == "transcription" else SOUNDS
            file = await served.ask("GET", f"{path}/{sound_id}/content")
            assert (file.status, len(file.body)) == (200, sound["output"]["size_bytes"])
    balance = (await served.ask("GET", "/v1/balance")).json["available"]["amount"]
    assert Decimal(str(balance)) == CREDIT - due
    assert [row["held"] for row in await rig.rows("SELECT held FROM orgs")] == [0]
    sent = [heard.fields["text"] for heard in rig.lab.effects.received]
    assert len(sent) == len(set(sent)), "no sound was ordered twice"
    assert any(sound["status"] == "completed" for sound in shown.values())
    assert await rig.breaches() == []
