"""Seals get time-stamps of an authority, in every format; one that stamps nothing, or something else, fails them."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.clock import Clock
from penstock.imaging.workers import WorkerPool
from penstock.net.client import HttpClient
from penstock.provenance.seal import read_file
from penstock.provenance.sealer import TASKS, Origin, Sealer
from penstock.provenance.time_stamps import NotStamped, TimeStamps
from penstock.schema import Provenance, Request
from penstock.telemetry.metrics import Metrics
from penstock.values import OrgId
from tests.fake_providers.scripted import mp4
from tests.jumbf import is_untouched, manifests
from tests.signed_files import own_signing, picture, signed_by_vendor
from tests.tcp_server import Connection, serve
from tests.time_stamp_authority import time_stamp_authority

ORG = OrgId("org_1")
ORIGIN = Origin("req_1", "m", "lab/m", "lab")
OURS = own_signing(trusts_vendor=False)
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"><rect width="5"/></svg>'
SIGNED = b"\x84\x6aSignature1\x43abc\x40\x41x"
needs_openssl = pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is the authority")


async def sealed(sealer: Sealer, content_type: str, data: bytes) -> tuple[Any, Any]:
    task = "video" if content_type.startswith("video") else "image"
    request = Request(task=task, model="m", values={}, provenance=Provenance("sign"))
    if content_type == "image/svg+xml":
        return await sealer.seal_svg(data, request, ORIGIN, for_org=ORG)
    if task == "image":
        return await sealer.seal_image(data, content_type, None, request, ORIGIN, for_org=ORG)

    async def load() -> bytes:
        return data

    return await sealer.seal_video(data, len(data), content_type, load, request, ORIGIN, for_org=ORG)


@needs_openssl
async def test_a_seal_in_any_format_says_when_it_was_made(tmp_path: Path) -> None:
    forms = {f"image/{form}": picture(form) for form in ("png", "jpeg", "webp", "avif", "gif")}
    forms |= {"image/svg+xml": SVG, "video/mp4": mp4()}
    carried = signed_by_vendor(picture("jpeg"), "image/jpeg")
    async with time_stamp_authority(tmp_path / "stamps") as authority, WorkerPool(2, tasks=TASKS) as pool:
        client = HttpClient()
        stamps = TimeStamps(client, f"{authority.server.url}/stamp")
        sealer = Sealer(pool, Clock(), Metrics(), OURS, video_bytes=10**6, stamps=stamps)
        for content_type, data in [*forms.items(), ("image/jpeg", carried)]:
            made, told = await sealed(sealer, content_type, data)
            assert told.status == ("carried" if data is carried else "signed"), content_type
            file = bytes(made if content_type == "video/mp4" else made.data)
            found = read_file(file, content_type, authority.root, OURS.own_roots)["credentials"]
            assert found["signed_at"], content_type
            assert found["state"] == "Valid"
            assert not [code for code in found["problems"] if code != "signingCredential.untrusted"]
            assert is_untouched(file)
            assert manifests(file)[-1].name == told.manifest
        assert len(authority.server.requests) == 8
        await client.close()


def lying(body: bytes, status: int = 200) -> Callable[[Connection], Any]:
    async def answer(connection: Connection) -> None:
        await connection.read_request()
        await connection.respond(body, status=status)

    return answer


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (b"", 200, "sent no time-stamp"),
        (b"\x30\x05\x30\x03\x02\x01\x02", 200, "refused to stamp"),
        (b"\x30\x82\xff", 200, "sent no time-stamp"),
        (b"\x30\x08\x30\x03\x02\x01\x00\x30\x01x", 200, "stamped something else"),
        (b"", 503, "status is 503"),
    ],
)
async def test_an_authority_that_does_not_stamp_fails_the_seal(body: bytes, status: int, reason: str) -> None:
    client = HttpClient()
    async with serve(lying(body, status)) as server:
        with pytest.raises(NotStamped, match=reason):
            await TimeStamps(client, server.url).stamp(SIGNED, OURS.sign(SIGNED), "es256")
    with pytest.raises(NotStamped):  # nobody listens any more
        await TimeStamps(client, server.url).stamp(SIGNED, OURS.sign(SIGNED), "es256")
    await client.close()


async def test_an_output_without_its_time_stamp_has_no_seal() -> None:
    async with serve(lying(b"", 503)) as server, WorkerPool(2, tasks=TASKS) as pool:
        client = HttpClient()
        sealer = Sealer(pool, Clock(), Metrics(), OURS, video_bytes=0, stamps=TimeStamps(client, server.url))
        _, told = await sealed(sealer, "image/png", picture("png"))
        assert told.status == "failed"
        await client.close()


async def test_only_signatures_of_statements_are_stamped() -> None:
    client = HttpClient()
    with pytest.raises(NotStamped, match="is not of COSE"):
        await TimeStamps(client, "http://127.0.0.1:1").stamp(b"anything", b"x" * 64, "es256")
    await client.close()
