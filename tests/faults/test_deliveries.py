"""kill -9 while outputs are copied into a bucket: each is there once, under one name, and is charged once."""

import asyncio
import hashlib
import json
import signal
from collections import Counter
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import pytest

from penstock.media.bucket import Bucket
from tests.fake_providers.scripted import IMAGE_USD
from tests.faults.rig import CREDIT, VIDEO_USD, EndedEarly, Rig, Running, rigged, until
from tests.s3_server import BUCKET, KEY_ID, SECRET, S3Server, run_s3_server

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]

BATCH = 4  # of each kind
OUTPUTS = 2  # of each request
LOOPBACK = {"PENSTOCK_EGRESS_ALLOW_CIDRS": "127.0.0.0/8"}
# Where the process dies, and at which passage.
PLACES = (
    "media.after_fsync=kill:5",
    "deliver.after_made=kill:3",
    "deliver.after_copy=kill:3",
    "deliver.after_copy=kill:6",
    "settle.in_tx=kill:3",
    "settle.after_commit=kill:3",
)


async def add_destination(served: Running, s3: S3Server) -> None:
    keys = {"access_key_id": KEY_ID, "secret_access_key": SECRET}
    body = {"url": f"s3://{BUCKET}/out", "endpoint": s3.endpoint, "default": True, **keys}
    added = await served.ask("POST", "/v1/destinations", body)
    assert added.status == 200, added


async def promise(served: Running, name: str) -> list[str]:
    """Ask for images and videos at the same time; the ids of those that were accepted."""

    async def ask(number: int) -> str | None:
        prompt = f"{name}, {number}"
        try:
            if number % 2:
                image = {"model": "image-1", "prompt": prompt, "size": "64x64", "n": OUTPUTS}
                path = "/compat/v1/images/generations"
                said = await served.ask("POST", path, image, prefer="respond-async")
            else:
                video = {"model": "video-1", "prompt": prompt, "seconds": 4, "n": OUTPUTS}
                said = await served.ask("POST", "/compat/v1/videos", video)
        except (ConnectionError, EOFError):
            return None  # cut off: nothing was promised
        assert said.status == 202, said
        return str(said.json["id"])

    found = await asyncio.gather(*(ask(number) for number in range(2 * BATCH)))
    return [request_id for request_id in found if request_id]


async def test_killed_while_outputs_are_copied(tmp_path: Path, database: str) -> None:
    promised: list[str] = []
    (tmp_path / "buckets").mkdir()
    with run_s3_server(tmp_path / "buckets") as s3:
        async with rigged(tmp_path, database) as rig:
            async with rig.serve(**LOOPBACK) as served:
                await add_destination(served, s3)
                assert await served.stop() == 0
            for place in PLACES:
                try:
                    async with rig.serve(place, **LOOPBACK) as served:
                        with suppress(OSError):
                            promised += await promise(served, place)
                        assert await served.died() == -signal.SIGKILL, place
                except EndedEarly:
                    assert rig.last_code == -signal.SIGKILL, place
                assert await rig.breaches() == [], place
            async with rig.serve(**LOOPBACK) as served:
                await until(lambda: has_ended(rig), 120)
                await check(rig, served, s3, promised)
                assert await served.stop() == 0


async def has_ended(rig: Rig) -> bool:
    return not await rig.rows("SELECT id FROM generations WHERE status IN ('queued', 'in_progress') LIMIT 1")


async def check(rig: Rig, served: Running, s3: S3Server, promised: list[str]) -> None:
    requests = {row["id"]: row for row in await rig.rows("SELECT id, kind, status, error_code, cost FROM requests")}
    assert set(promised) <= requests.keys()
    media = await rig.rows("SELECT request_id, sha256, delivered FROM media WHERE role = 'output'")
    copies = {json.loads(row["delivered"])["delivered"]["url"]: bytes(row["sha256"]) for row in media}
    bucket = Bucket(f"s3://{BUCKET}", s3.options)
    found = {}
    for file in await bucket.list_files():
        if ".penstock-check" not in file.key:
            data = b"".join([part async for part in bucket.read(file.key, 0, file.size_bytes)])
            found[f"s3://{BUCKET}/{file.key}"] = hashlib.sha256(data).digest()
    assert found == copies, "each output is there once, under the name that its record says"
    counts = Counter(row["request_id"] for row in media)
    due = Decimal(0)
    for request_id, request in requests.items():
        is_completed = request["status"] == "completed"
        unknown = "UPSTREAM_OUTCOME_UNKNOWN" if request["kind"] == "video" else "UPSTREAM_ERROR"
        assert is_completed or request["error_code"] == unknown, request
        # A part of a video whose job is unknown is not there and not charged.
        usd = counts[request_id] * (VIDEO_USD if request["kind"] == "video" else IMAGE_USD)
        assert Decimal(request["cost"]).scaleb(-9) == usd
        due += usd
    balance = (await served.ask("GET", "/v1/balance")).json["available"]["amount"]
    assert Decimal(str(balance)) == CREDIT - due
    assert [row["held"] for row in await rig.rows("SELECT held FROM orgs")] == [0]
    assert sum(row["status"] == "completed" for row in requests.values()) > BATCH
    assert await rig.rows("SELECT id FROM generations WHERE made IS NOT NULL") == []
    assert await rig.breaches() == []
