"""kill -9 while speech, effects and transcripts are made: each job ends once, and is charged at most once."""

import signal
from contextlib import suppress
from pathlib import Path

import pytest

from tests.faults.rig import SOUNDS, TRANSCRIPTS, EndedEarly, Rig, Running, rigged

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]

BATCH = 4  # of each kind
UNKNOWN = "UPSTREAM_OUTCOME_UNKNOWN"
# Where the process dies, and at which passage.
PLACES = (
    "hook.sent=kill:4",
    "hook.after_2xx=kill:4",
    "accept.after_commit=kill:5",
    "submit.intent_committed=kill:6",
    "submit.response_read=kill:2",
    "fetch.mid=kill:2",
    "media.after_fsync=kill:2",
    "settle.in_tx=kill:2",
    "settle.after_commit=kill:2",
)


async def test_kills_while_sounds_are_made(tmp_path: Path, database: str) -> None:
    promised: list[str] = []
    async with rigged(tmp_path, database) as rig:
        for place in PLACES:
            try:
                async with rig.serve(place) as served:
                    with suppress(OSError):
                        promised += await rig.promise_sounds(served, BATCH)
                    assert await served.died() == -signal.SIGKILL, place
            except EndedEarly:
                assert rig.last_code == -signal.SIGKILL, place
            assert await rig.breaches() == [], place
        async with rig.serve() as served:
            outcomes = await rig.check(served, promised, frozenset({UNKNOWN}))
            assert outcomes["completed"] > BATCH
            await check_files(rig, served)
            assert await served.stop() == 0


async def check_files(rig: Rig, served: Running) -> None:
    """Only effects may have an unknown outcome: what is cheap to repeat is asked again. Each file is whole."""
    for sound in await rig.sounds(served):
        assert sound["status"] == "completed" or sound["model"] == "lab/sound", sound
        if sound["output"]:
            path = TRANSCRIPTS if sound["model"] == "lab/listen" else SOUNDS
            file = await served.ask("GET", f"{path}/{sound['id']}/content")
            assert (file.status, len(file.body)) == (200, sound["output"]["size_bytes"])
