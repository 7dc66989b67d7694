"""Outputs of a gateway are sealed in confined child processes that ask for one signature."""

import msgspec
import pytest

from penstock.clock import Clock
from penstock.imaging.marks import NO_MARKS
from penstock.imaging.workers import WorkerPool, WorkFailed
from penstock.provenance.seal import read_state
from penstock.provenance.sealer import TASKS, NotSealed, Origin, Sealer
from penstock.schema import Provenance, Request
from penstock.telemetry.metrics import Metrics
from penstock.values import OrgId
from tests.fake_providers.scripted import mp4
from tests.signed_files import damaged, own_signing, picture, signed_by_vendor

ORG = OrgId("org_1")
ORIGIN = Origin("req_1", "image-model", "lab/image-model", "lab")
SIGN = Request(task="image", model="image-model", values={"prompt": "a secret"}, provenance=Provenance("sign"))
KEEP = msgspec.structs.replace(SIGN, provenance=Provenance("keep"))


def sealer(pool: WorkerPool, *, can_sign: bool = True) -> Sealer:
    signing = own_signing(trusts_vendor=False) if can_sign else None
    return Sealer(pool, Clock(), Metrics(), signing, video_bytes=1_000_000)


async def test_an_image_is_converted_and_sealed_in_one_confined_child() -> None:
    protections: list[object] = []
    async with WorkerPool(2, tasks=TASKS, report_protections=protections.append) as pool:
        image, found = await sealer(pool).seal_image(
            picture("png"), "image/png", ("webp", 90), SIGN, ORIGIN, for_org=ORG
        )
    assert image
    assert found
    assert (image.content_type, image.width, found.status) == ("image/webp", 256, "signed")
    after = read_state(bytes(image.data), "image/webp", "")
    assert after
    assert after["manifest"] == found.manifest
    assert b"a secret" not in image.data
    assert protections, "the child is confined before it reads the file"


async def test_a_child_may_ask_once() -> None:
    async with WorkerPool(2, tasks=TASKS) as pool:
        mine = sealer(pool)
        child_asks = pool._tasks["provenance.seal"]
        assert child_asks.signs
        with pytest.raises(WorkFailed):  # a task that may not ask at all is ended like one that asks again
            await pool.run(
                "provenance.seal",
                for_org=ORG,
                data=picture("png"),
                content_type="image/png",
                plan=mine._plan(Provenance("sign"), NO_MARKS, SIGN, ORIGIN),
            )


async def test_without_the_library_marks_are_only_found() -> None:
    async with WorkerPool(2, tasks=TASKS) as pool:
        mine = sealer(pool, can_sign=False)
        signed = signed_by_vendor(picture("png"), "image/png")
        for conversion, status in ((None, "kept"), (("webp", 90), "removed")):
            image, found = await mine.seal_image(signed, "image/png", conversion, KEEP, ORIGIN, for_org=ORG)  # type: ignore[arg-type]
            assert (image, found and found.status) == (None, status)
        required = msgspec.structs.replace(KEEP, provenance=Provenance("keep", required=True))
        with pytest.raises(NotSealed, match="is `removed`"):
            await mine.seal_image(signed, "image/png", ("webp", 90), required, ORIGIN, for_org=ORG)
        assert pool.pids == [], "no child was needed"


async def test_a_seal_that_is_kept_costs_no_child() -> None:
    async with WorkerPool(2, tasks=TASKS) as pool:
        signed = signed_by_vendor(picture("png"), "image/png")
        image, found = await sealer(pool).seal_image(signed, "image/png", None, KEEP, ORIGIN, for_org=ORG)
        assert (image, found and found.status, pool.pids) == (None, "kept", [])


async def test_a_seal_that_is_required_is_one_that_holds() -> None:
    required = msgspec.structs.replace(KEEP, provenance=Provenance("keep", required=True))
    signed = signed_by_vendor(picture("png"), "image/png")
    async with WorkerPool(2, tasks=TASKS) as pool:
        mine = sealer(pool)
        _, found = await mine.seal_image(signed, "image/png", None, required, ORIGIN, for_org=ORG)
        assert found
        assert (found.status, found.vendor and found.vendor.state) == ("kept", "Valid")
        with pytest.raises(NotSealed, match="is `invalid`"):
            await mine.seal_image(damaged(signed), "image/png", None, required, ORIGIN, for_org=ORG)


async def test_off_does_nothing() -> None:
    async with WorkerPool(2, tasks=TASKS) as pool:
        off = msgspec.structs.replace(SIGN, provenance=Provenance("off"))
        found = await sealer(pool).seal_image(picture("png"), "image/png", None, off, ORIGIN, for_org=ORG)
        assert found == (None, None)


async def test_a_video_is_sealed_unless_it_is_too_large() -> None:
    video = mp4()
    request = Request(task="video", model="video-model", values={}, provenance=Provenance("sign"))

    async def load() -> bytes:
        return video

    async with WorkerPool(2, tasks=TASKS) as pool:
        mine = sealer(pool)
        for size, content_type, status in (
            (len(video), "video/mp4", "signed"),
            (2_000_000, "video/mp4", "too_large"),
            (len(video), "video/webm", "unsupported_format"),
        ):
            made, found = await mine.seal_video(video, size, content_type, load, request, ORIGIN, for_org=ORG)
            assert found
            assert found.status == status
            assert (made is None) == (status != "signed")
