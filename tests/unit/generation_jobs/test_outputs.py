"""Outputs: downloads that fail are repeated, and what cannot be stored is not charged."""

import asyncio
import base64
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from penstock.errors import Problem, StorageUnavailable
from penstock.provenance.signing import Signing
from penstock.values import nanos
from tests.fake_providers import faults
from tests.fake_providers.server import Act
from tests.gateway import OpenGateway, RunningGateway, sqlite_only
from tests.unit.generations.failing import UNTOUCHED, failure, named


async def test_a_download_that_fails_is_tried_again(open_gateway: OpenGateway) -> None:
    """The video was made, so the download is repeated."""
    async with open_gateway(annex=True) as running:
        running.lab.contents.next(faults.broken, faults.dropped, faults.cut(), faults.missing)
        done = await running.wait_for_video((await running.video()).json["id"])
        assert (done["status"], done["metadata"]["provider"]) == ("completed", "lab")
        assert len(running.lab.contents) == 5
        assert len(running.lab.invoice) == 1


@sqlite_only
async def test_an_output_that_cannot_be_downloaded_is_not_made_again(open_gateway: OpenGateway) -> None:
    """It was made and billed; another provider would make and bill it again."""
    async with open_gateway(annex=True) as running:
        running.lab.contents.always(faults.broken)
        done = await running.wait_for_video((await running.video()).json["id"], step_seconds=5)
        assert done["error"]["code"] == "UPSTREAM_ERROR"
        assert running.annex.submits == 0
        assert await running.money() == UNTOUCHED


@sqlite_only
async def test_an_image_that_cannot_be_downloaded(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        running.lab.returns_urls = True
        running.lab.files.next(faults.broken)
        waiting = asyncio.create_task(running.image())
        await running.lab.files.reached(1)
        await running.wait_until_idle()
        assert (await waiting)["metadata"]["provider"] == "lab"
        running.lab.files.always(faults.broken)
        waiting = asyncio.create_task(failure(running))
        await running.lab.files.reached(3)
        await running.wait_until_idle()
        assert (await waiting).code == "UPSTREAM_ERROR"
        assert running.annex.submits == 0


@named(
    {
        "a page": faults.file(b"<!doctype html>" + b" " * 5000, "video/mp4"),
        "an image": faults.file(b"\x89PNG\r\n\x1a\n" + b"\0" * 100, "video/mp4"),
        "nothing": faults.file(b"", "video/mp4"),
    }
)
@sqlite_only
async def test_a_file_that_is_not_a_video_is_refused(open_gateway: OpenGateway, act: Act) -> None:
    """Whatever its name or content type: it is not charged, and the next provider is tried."""
    async with open_gateway(annex=True) as running:
        running.lab.contents.always(act)
        done = await running.wait_for_video((await running.video()).json["id"], step_seconds=5)
        assert (done["status"], done["metadata"]["provider"]) == ("completed", "annex")
        assert await running.money() == (nanos("9.6"), 0)


@named(
    {
        "a page": faults.file(b"<!doctype html>" + b" " * 5000, "text/html"),
        "nothing": faults.file(b"", "video/mp4"),
        "half of it": faults.half,
    }
)
@sqlite_only
async def test_a_file_that_is_wrong_once_is_downloaded_again(open_gateway: OpenGateway, act: Act) -> None:
    async with open_gateway(annex=True) as running:
        running.lab.contents.next(act)
        with capture_logs() as lines:
            done = await running.wait_for_video((await running.video()).json["id"])
        assert (done["status"], done["metadata"]["provider"]) == ("completed", "lab")
        assert len(running.lab.contents) == 2
        (line,) = [line for line in lines if line["event"] == "output not usable yet, trying again"]
        assert (line["request_id"], line["provider"]) == (done["id"], "lab")


@contextmanager
def full_storage(running: RunningGateway) -> Iterator[Path]:
    """A storage that takes no files: its folder is replaced by a file."""
    media = running.gateway.settings.data / "media"
    away = media.with_name("media-away")
    media.rename(away)
    media.write_text("in the way")
    try:
        yield away
    finally:
        media.unlink()
        away.rename(media)


@sqlite_only
async def test_an_image_that_cannot_be_stored(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        with full_storage(running):
            problem = await failure(running)
        assert isinstance(problem, StorageUnavailable)
        assert (problem.status, problem.should_retry) == (503, False)
        assert await running.money() == UNTOUCHED
        assert running.annex.submits == 0
        (attempt,) = await running.rows("SELECT id FROM attempts")
        assert (await running.transfers(attempt["id"]))["loss"] == nanos("0.04"), "the provider has made it"
        assert await running.image()


@sqlite_only
async def test_a_recording_that_cannot_be_stored(open_gateway: OpenGateway) -> None:
    """Neither when it is made nor when it is replayed; a recording may also lose its files."""
    async with open_gateway() as running:
        ask = {"x-service-replay": "replay-or-record"}
        with full_storage(running), pytest.raises(StorageUnavailable):
            await running.image(headers=ask)
        await running.image(headers=ask)
        with full_storage(running), pytest.raises(Problem, match="deleted before it could be served"):
            await running.image(headers=ask)
        assert await running.image(headers=ask)
        assert len(running.lab.images) == 2


@sqlite_only
async def test_a_video_waits_until_it_can_be_stored(open_gateway: OpenGateway) -> None:
    """It waits for hours, not charged, and is completed as soon as its file can be stored."""
    async with open_gateway() as running:
        with full_storage(running), capture_logs() as lines:
            video_id = (await running.video()).json["id"]

            async def tried() -> bool:
                """It was, and waits for the next time: nothing is being stored while the folder comes back."""
                return len([line for line in lines if line["event"] == "output not stored"]) >= 8

            await running.wait_until(tried, step_seconds=5)  # far less than the pause that follows
            assert len(running.lab.contents) == 8, "the operator can see each time why"
            assert (await running.get_video(video_id))["status"] == "in_progress"
            assert await running.money() == (nanos("9.6"), nanos("0.4"))
        assert (await running.wait_for_video(video_id, step_seconds=5))["status"] == "completed"
        assert len(running.lab.videos) == 1


@sqlite_only
async def test_nothing_is_left_in_the_scratch_folder(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        running.lab.contents.next(faults.cut(), faults.file(b"<html>", "video/mp4"))
        await running.wait_for_video((await running.video()).json["id"])
        assert running.scratch == []


@sqlite_only
async def test_an_image_too_large_to_be_converted_is_delivered_as_it_was_made(open_gateway: OpenGateway) -> None:
    """It is paid for, and the provider is not to blame for what a caller asked of the gateway."""
    header = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (8000).to_bytes(4, "big") + (6000).to_bytes(4, "big") + b"\x08\x02"
    large = header + b"\0" * 1000
    async with open_gateway() as running:
        running.lab.images.always(faults.altered(data=[{"b64_json": base64.b64encode(large).decode()}]))
        for _ in range(4):
            made = await running.image(output_format="jpeg", response_format="b64_json")
            assert base64.b64decode(made["data"][0]["b64_json"]) == large
            assert (made["output_format"], made["size"]) == ("png", "8000x6000")
        assert await running.money() == (nanos("9.84"), 0)
        assert running.gateway.health.is_healthy("lab", "easel-1")


@sqlite_only
async def test_a_broken_image_is_not_delivered(open_gateway: OpenGateway) -> None:
    header = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (64).to_bytes(4, "big") + (64).to_bytes(4, "big") + b"\x08\x02"
    async with open_gateway() as running:
        running.lab.images.next(faults.altered(data=[{"b64_json": base64.b64encode(header + b"\0" * 99).decode()}]))
        assert "unusable" in (await failure(running, output_format="jpeg")).message
        assert await running.money() == UNTOUCHED


@sqlite_only
async def test_a_file_that_is_too_large_does_not_count_against_the_provider(open_gateway: OpenGateway) -> None:
    """A caller can cause it, so the provider stays healthy for others, and no second provider is paid for the same."""
    async with open_gateway(annex=True, video_bytes=3) as running:
        for _ in range(4):
            done = await running.wait_for_video((await running.video()).json["id"])
            assert "too large" in done["error"]["message"]
        assert running.annex.submits == 0
        assert running.gateway.health.is_healthy("lab", "reel-1")
        assert await running.money() == UNTOUCHED
        losses = await running.rows("SELECT amount FROM transfers WHERE kind = 'loss'")
        assert [row["amount"] for row in losses] == [nanos("0.4")] * 4


@sqlite_only
async def test_a_video_that_can_never_be_sealed_is_not_tried_again(open_gateway: OpenGateway) -> None:
    async with open_gateway(provenance="sign", provenance_video_bytes=1) as running:
        video_id = (await running.video(provenance="sign; required")).json["id"]
        done = await running.wait_for_video(video_id, step_seconds=5)
        assert (done["status"], done["error"]["code"]) == ("failed", "PROVENANCE_UNAVAILABLE")
        assert "`too_large`" in done["error"]["message"]
        assert len(running.lab.contents) == 1


@contextmanager
def signer_away(monkeypatch: pytest.MonkeyPatch, times: int) -> Iterator[list[None]]:
    """The signer fails so often, and then signs."""
    asked: list[None] = []

    def is_valid(*_: object) -> bool:
        asked.append(None)
        return len(asked) > times

    with monkeypatch.context() as patch:
        patch.setattr(Signing, "is_valid", is_valid)
        yield asked


@sqlite_only
async def test_an_image_that_must_be_signed_waits_for_the_signer(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_gateway(provenance="sign", provenance_required=True) as running:
        with signer_away(monkeypatch, 3):
            waiting = asyncio.create_task(running.image())
            await running.lab.images.reached(1)
            await running.wait_until_idle()
            assert (await waiting)["metadata"]["content_credentials"] == "signed"
        assert (len(running.lab.images), len(running.lab.invoice)) == (1, 1)
        with signer_away(monkeypatch, 100) as asked:
            waiting_in_vain = asyncio.create_task(failure(running))
            await running.lab.images.reached(2)
            await running.wait_until_idle()
            problem = await waiting_in_vain
        assert (problem.code, problem.status, problem.should_retry) == ("PROVENANCE_UNAVAILABLE", 503, False)
        assert 3 < len(asked) < 8, "for fifteen seconds"
        assert len(running.lab.images) == 2
        (attempt,) = await running.rows("SELECT id FROM attempts WHERE state = 'failed'")
        assert (await running.transfers(attempt["id"]))["loss"] == nanos("0.04"), "the provider has made it"


@sqlite_only
async def test_an_image_that_need_not_be_signed_does_not_wait(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_gateway(provenance="sign") as running:
        with signer_away(monkeypatch, 100) as asked, capture_logs() as lines:
            assert (await running.image())["metadata"]["content_credentials"] == "failed"
        assert len(asked) == 1
        assert [line["reason"] for line in lines if line["event"] == "output not sealed"] != []


@sqlite_only
async def test_a_video_that_must_be_signed_waits_for_the_signer(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_gateway(provenance="sign", provenance_required=True) as running:
        with signer_away(monkeypatch, 6):
            done = await running.wait_for_video((await running.video()).json["id"], step_seconds=5)
        assert (done["status"], done["output"]["content_credentials"]["status"]) == ("completed", "signed")
        assert len(running.lab.videos) == 1
