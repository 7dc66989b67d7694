"""Damaged, huge and endless credentials cost at most the child process that reads them."""

import random
from contextlib import suppress
from typing import Any

import pytest

from penstock.imaging.marks import find_marks
from penstock.imaging.workers import WorkerPool, WorkFailed
from penstock.provenance import seal
from penstock.provenance.sealer import TASKS
from penstock.values import OrgId
from tests.signed_files import own_signing, picture, plan, signed_by_vendor

ORG = OrgId("org_1")
FORMS = ("png", "jpeg", "webp", "gif")
OURS = own_signing(trusts_vendor=False)


def damaged_files(seed: int, count: int) -> list[tuple[str, bytes]]:
    """Signed files of several formats, each with up to sixty bytes of its seal changed, cut out or repeated."""
    chance = random.Random(seed)
    signed = [(f"image/{form}", signed_by_vendor(picture(form.upper()), f"image/{form}")) for form in FORMS]
    files = []
    for number in range(count):
        content_type, whole = signed[number % len(signed)]
        data = bytearray(whole)
        begin = max(0, data.find(b"jumb") - 64)
        end = min(len(data), begin + 14_000)
        for _ in range(chance.randint(1, 60)):
            at = chance.randrange(begin, min(end, len(data) - 9))
            match chance.randrange(4):
                case 0:
                    data[at] = chance.randrange(256)
                case 1:
                    data[at : at + 4] = chance.randbytes(4)
                case 2:
                    del data[at : at + chance.randint(1, 8)]
                case _:
                    data[at:at] = data[at : at + chance.randint(1, 8)]
        files.append((content_type, bytes(data)))
    return files


async def read(pool: WorkerPool, data: bytes, content_type: str) -> Any:
    found = await pool.run(
        "provenance.read", for_org=ORG, data=data, content_type=content_type, anchors="", own_roots=""
    )
    return found["credentials"]


@pytest.mark.sweep(12)
@pytest.mark.parametrize("seed", range(24))
async def test_damaged_files_are_read_without_losing_the_child(seed: int) -> None:
    """Four hundred and eighty in all."""
    async with WorkerPool(2, tasks=TASKS) as pool:
        await read(pool, picture("PNG"), "image/png")
        first = pool.pids
        for content_type, data in damaged_files(seed, 20):
            find_marks(data)
            found = await read(pool, data, content_type)
            assert found is None or found["state"] in ("Invalid", "Valid")
        assert pool.pids == first


def chain(links: int) -> bytes:
    data = signed_by_vendor(picture("JPEG"), "image/jpeg")
    for _ in range(links - 1):
        made = seal.seal_file(data, "image/jpeg", plan(OURS, has_seal=True), OURS.sign)
        assert made["status"] == "carried"
        data = made["data"]
    return data


@pytest.mark.sweep(2)
@pytest.mark.parametrize(("most", "links"), [(6, 7), (seal.MAX_CARRIED_MANIFESTS, 40)])
def test_a_chain_that_is_too_long_is_neither_carried_nor_repeated(
    most: int, links: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(seal, "MAX_CARRIED_MANIFESTS", links)
        data = chain(links)
    monkeypatch.setattr(seal, "MAX_CARRIED_MANIFESTS", most)
    made = seal.seal_image(data, "image/jpeg", plan(OURS, "keep", has_seal=True), OURS.sign, ("png", 100))
    assert made["status"] == "dropped_large"
    assert seal.archive_input(data, "image/jpeg", 1, "")["archive"] == b""
    assert len(seal.read_file(data, "image/jpeg", "")["credentials"]["chain"]) == links


async def test_a_seal_of_two_megabytes_is_read_or_refused_and_nothing_else_suffers() -> None:
    """The declared size is that of a real seal, filled with what no statement has."""
    png = picture("PNG")
    body = b"caBX" + b"\x00\x1e\x84\x80jumb" + b"\x00" * 1_999_992
    data = png[:33] + (len(body) - 4).to_bytes(4, "big") + body + b"\0\0\0\0" + png[33:]
    async with WorkerPool(2, tasks=TASKS) as pool:
        with suppress(WorkFailed):
            assert (await read(pool, data, "image/png"))["state"] == "Invalid"
        assert (await read(pool, signed_by_vendor(png, "image/png"), "image/png"))["state"] == "Valid"
