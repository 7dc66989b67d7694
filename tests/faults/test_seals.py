"""kill -9 while outputs are signed, and a signer that goes away: each output is made and charged once, and is whole."""

import asyncio
import json
import signal
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.api.raw_http import RawResponse
from tests.faults.rig import Rig, Running, rigged, until
from tests.signed_files import signer_command, signer_folder

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]

BATCH = 4


async def image(served: Running, prompt: str, **fields: Any) -> RawResponse:
    body = {"model": "image-1", "prompt": prompt, "size": "64x64", **fields}
    return await served.ask("POST", "/compat/v1/images/generations", body)


async def test_killed_while_images_are_signed(tmp_path: Path, database: str) -> None:
    """What a provider sent in its response is lost with the process: nobody pays for it, and it is not sent again."""
    async with rigged(tmp_path, database) as rig:
        for place in ("seal.before_sign", "seal.after_sign"):
            async with rig.serve(f"{place}=kill:2") as served:
                asked = [image(served, f"{place} {number}") for number in range(BATCH)]
                with suppress(OSError):
                    await asyncio.gather(*asked, return_exceptions=True)
                assert await served.died() == -signal.SIGKILL, place
            assert await rig.breaches() == [], place
        async with rig.serve() as served:
            assert (await image(served, "after all")).json["metadata"]["content_credentials"] == "signed"
            await rig.check(served, [])
            records = await rig.rows("SELECT status FROM requests")
            statuses = Counter(record["status"] for record in records)
            assert statuses.keys() == {"completed", "upstream_failure"}
            assert await served.stop() == 0


async def test_a_signer_that_goes_away_and_comes_back(tmp_path: Path, database: str) -> None:
    """Outputs that need no seal are delivered without one; those that do wait for it, also across a crash."""
    folder = signer_folder(tmp_path / "signer")
    away = folder / "away"
    environment = {"PENSTOCK_PROVENANCE_SIGNER": signer_command(folder)}
    required = {"provenance": {"mode": "sign", "required": True}}
    async with rigged(tmp_path, database) as rig:
        async with rig.serve(**environment) as served:
            assert (await image(served, "present")).json["metadata"]["content_credentials"] == "signed"
            away.touch()
            unsealed = await image(served, "away")
            assert (unsealed.status, unsealed.json["metadata"]["content_credentials"]) == (200, "failed")
            failures = served.said.count("signer failed")
            waiting = asyncio.create_task(image(served, "patient", **required))
            await until(lambda: served.said.count("signer failed") > failures)
            away.unlink()
            assert (await waiting).json["metadata"]["content_credentials"] == "signed"

            away.touch()
            failures = served.said.count("signer failed")
            (video_id,) = await rig.promise(served, 1, **required)
            await until(lambda: served.said.count("signer failed") > failures)
            assert "the device is away" in served.said
            await served.kill()
        away.unlink()
        async with rig.serve(**environment) as served:
            (video,) = await rig.settled(served)
            assert (video["id"], video["status"]) == (video_id, "completed")
            assert await statuses_of(rig) == Counter({"signed": 3, "failed": 1})
            await rig.check_money(served)
            assert await rig.breaches() == []
            assert len(rig.lab.videos.received) == 1
            assert len(rig.lab.images.received) == 3
            assert await served.stop() == 0


async def statuses_of(rig: Rig) -> Counter[str]:
    rows = await rig.rows("SELECT credentials FROM seals")
    return Counter(json.loads(row["credentials"])["status"] for row in rows)
