"""Images and videos from callers and providers are checked, converted and stored."""

import base64
import errno
import io
import random
import struct
from typing import Any, Literal

import msgspec
import pytest
from PIL import Image
from structlog.testing import capture_logs

from penstock.errors import InvalidRequest, Unavailable
from penstock.fields import UploadedFile
from penstock.imaging.workers import WorkerPool, WorkFailed
from penstock.long_bodies import base64_pieces
from penstock.long_bodies.base64_pieces import Base64Text
from penstock.media import sources as sources_module
from penstock.media.download import Download
from penstock.media.provider_files import DownloadFailed, UnusableFile
from penstock.media.storage import storage_key
from penstock.media.transfer import OutputNotStored, Transfer
from penstock.net.errors import LookupBusy
from penstock.provenance.sealer import Origin
from penstock.providers.spec import File
from penstock.schema import Request
from penstock.upstream.urls import DownloadSource
from penstock.values import InputFile, OrgId
from tests.fake_providers import faults
from tests.fake_providers.scripted import mp4, png
from tests.gateway import OpenGateway, RunningGateway, sqlite_only
from tests.work import peak_bytes

ORG = OrgId("org_1")

pytestmark = sqlite_only
IMAGE = Request(task="image", model="image-model", values={})
VIDEO = Request(task="video", model="video-model", values={})
MEDIA_ID = "med_" + "0" * 30 + "00"
ORIGIN = Origin("req_1", "image-model", "lab/image-model", "lab")


def encode(form: str, size: tuple[int, int] = (8, 4), **options: Any) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size, "teal").save(file, form, **options)
    return file.getvalue()


def uri(data: bytes, content_type: str = "image/png") -> str:
    return f"data:{content_type};base64,{base64.b64encode(data).decode()}"


async def load(transfer: Transfer, source: UploadedFile | str) -> InputFile:
    return await transfer.load_input("image", source, "image", for_org=ORG)


# -------------------------------------------------------------------------------------------------------------- inputs


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP"])
async def test_input_images_of_each_format(open_gateway: OpenGateway, form: str) -> None:
    async with open_gateway(works=False) as running:
        data = encode(form)
        for source in (
            UploadedFile(data, "x.gif", "text/plain"),
            uri(data),
            uri(data, "image/gif"),
            "DATA:" + uri(data)[5:],
        ):
            found = await load(running.gateway.media_transfer, source)
            assert (found.content_type, found.width, found.height) == (f"image/{form.lower()}", 8, 4)


async def test_metadata_of_input_images_is_removed(open_gateway: OpenGateway) -> None:
    exif = Image.Exif()
    exif[0x010E] = "taken-at-home"
    async with open_gateway(works=False) as running:
        for form in ("JPEG", "PNG", "WEBP"):
            found = await load(running.gateway.media_transfer, UploadedFile(encode(form, exif=exif)))
            assert b"taken-at-home" not in found.data


NOT_IMAGES: list[UploadedFile | str] = [
    UploadedFile(b""),
    UploadedFile(b"GIF89a" + b"\0" * 100),
    UploadedFile(b"<svg xmlns='http://www.w3.org/2000/svg'/>"),
    UploadedFile(png(64, 64)[:60]),
    UploadedFile(b"%!PS-Adobe-3.0 EPSF-3.0\n"),
    "data:image/png;base64,not-base64!",
    "data:image/png;base64,",
    "data:image/png,plain",
]


async def test_files_that_are_not_images_are_refused(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        for source in NOT_IMAGES:
            with pytest.raises(InvalidRequest) as caught:
                await load(running.gateway.media_transfer, source)
            assert caught.value.param == "image", source


async def test_an_input_image_that_is_too_large_is_refused(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False, image_bytes=1000) as running:
        with pytest.raises(InvalidRequest, match="at most 1000 bytes"):
            await load(running.gateway.media_transfer, UploadedFile(b"x" * 1001))


async def test_an_input_image_with_too_many_pixels_is_refused(open_gateway: OpenGateway) -> None:
    """A small file whose header states half a billion pixels; the next image is read as before."""
    header = bytearray(png(16, 16))
    header[16:24] = (25_000).to_bytes(4, "big") * 2
    async with open_gateway(works=False) as running:
        with pytest.raises(InvalidRequest):
            await load(running.gateway.media_transfer, UploadedFile(bytes(header)))
        assert (await load(running.gateway.media_transfer, UploadedFile(png(16, 16)))).width == 16


async def test_input_urls_inside_the_network_of_the_gateway_are_refused(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        for url in ("https://127.0.0.1/x.png", "https://localhost/x.png", "https://[::1]/x.png"):
            with pytest.raises(InvalidRequest, match="URL that could not be fetched"):
                await load(running.gateway.media_transfer, url)


async def test_a_url_that_the_gateway_has_no_place_to_fetch_is_not_called_bad(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    shares = []

    async def fetch(*_: object, share: str, **__: object) -> None:
        shares.append(share)
        raise LookupBusy

    async with open_gateway(works=False) as running:
        transfer = running.gateway.media_transfer
        monkeypatch.setattr(transfer.sources._http_client, "fetch", fetch)
        with pytest.raises(Unavailable, match="`image` cannot be fetched now: too many host names"):
            await load(transfer, "https://images.test/x.png")
        assert shares == [ORG], "each organization has its own places"


async def test_input_images_are_stored_and_read_back(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        transfer = running.gateway.media_transfer
        loaded = await load(transfer, UploadedFile(png(16, 16)))
        ((stored, sha256),) = await transfer.store_inputs([loaded], running.clock.now_ms())
        assert (stored.size_bytes, len(sha256)) == (len(loaded.data), 32)
        request = Request(task="edit", model="edit-1", values={}, inputs=(stored,))
        images = await transfer.read_inputs(request, for_org=ORG)
        assert [image.data for image in images["images"]] == [loaded.data]
        await running.storage.delete(storage_key(stored.media_id))


# ------------------------------------------------------------------------------------------------------------- outputs


async def store_and_read(
    running: RunningGateway, file: File, request: Request = IMAGE, source: DownloadSource | None = None
) -> bytes:
    found = await running.gateway.media_transfer.store_output(MEDIA_ID, file, source, request, ORIGIN, for_org=ORG)
    data = b"".join([chunk async for chunk in running.storage.read(storage_key(MEDIA_ID), 0, 10**9)])
    assert (found.output.size_bytes, found.output.media_id) == (len(data), MEDIA_ID)
    await running.storage.delete(storage_key(MEDIA_ID))
    return data


SAME_IMAGE = [
    File(data=png(8, 8)),
    File(data=base64.b64encode(png(8, 8)).decode()),
    File(data=uri(png(8, 8))),
    File(url=uri(png(8, 8))),
]


async def test_outputs_come_as_bytes_base64_or_data_uri(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        for file in SAME_IMAGE:
            assert await store_and_read(running, file) == png(8, 8), file


UNUSABLE = [
    File(data=b""),
    File(data=b"<!doctype html>"),
    File(data="%%%"),
    File(data="abc"),
    File(url="data:image/png;base64,abc"),
    File(data=mp4()),
    File(data="zß水🍌"),
]


async def test_outputs_that_are_not_images_are_unusable(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        for file in UNUSABLE:
            with pytest.raises(UnusableFile):
                await store_and_read(running, file)
        assert await running.storage.list_files() == []


TEXT = base64.b64encode(png(8, 8)).decode()
INLINE = {"response_format": "b64_json"}


@pytest.mark.parametrize(
    "sent",
    [
        TEXT,
        Base64Text(memoryview(TEXT.encode())),
        Base64Text(memoryview(bytearray(TEXT.encode()))),
        Base64Text(memoryview(bytearray(b"\n" + TEXT.encode()))),
        uri(png(8, 8)),
        "\n".join((TEXT[:76], TEXT[76:])),
        png(8, 8),
        memoryview(png(8, 8)),
    ],
)
async def test_the_file_is_kept_for_a_response_with_base64(open_gateway: OpenGateway, sent: Any) -> None:
    async with open_gateway(works=False) as running:
        for values, data in ((INLINE, png(8, 8)), ({}, None)):
            request = Request(task="image", model="image-model", values=values)
            found = await running.gateway.media_transfer.store_output(
                MEDIA_ID, File(data=sent), None, request, ORIGIN, for_org=ORG
            )
            assert (found.data, found.output.size_bytes) == (data, len(png(8, 8)))
            await running.storage.delete(storage_key(MEDIA_ID))


async def test_long_base64_is_decoded_in_steps(open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (sources_module, base64_pieces):
        monkeypatch.setattr(module, "STEP", 8)
    async with open_gateway(works=False) as running:
        assert await store_and_read(running, File(data=TEXT)) == png(8, 8)
        for broken in (TEXT[:40] + "=" + TEXT[41:], TEXT[:-1], TEXT + "é"):
            with pytest.raises(InvalidRequest, match="not base64"):
                await load(running.gateway.media_transfer, f"data:image/png;base64,{broken}")


async def test_an_image_is_not_accepted_as_a_video(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        with pytest.raises(UnusableFile, match="image/png"):
            await store_and_read(running, File(data=png(8, 8)), VIDEO)
        assert await store_and_read(running, File(data=mp4()), VIDEO) == mp4()


@pytest.mark.parametrize(
    ("output_format", "content_type"), [("jpeg", "image/jpeg"), ("webp", "image/webp"), ("png", "image/png")]
)
async def test_images_are_converted_to_the_requested_format(
    open_gateway: OpenGateway, output_format: str, content_type: str
) -> None:
    async with open_gateway(works=False) as running:
        request = Request(
            task="image", model="image-model", values={"output_format": output_format, "output_compression": 50}
        )
        found = await running.gateway.media_transfer.store_output(
            MEDIA_ID, File(data=encode("PNG")), None, request, ORIGIN, for_org=ORG
        )
        assert (found.output.content_type, found.output.width, found.output.height) == (content_type, 8, 4)
        await running.storage.delete(storage_key(MEDIA_ID))


def source_at(running: RunningGateway, path: str, *, trusted: bool = True) -> DownloadSource:
    return DownloadSource(f"http://127.0.0.1:{running.lab.port}{path}", {}, trusted=trusted)


def video_source(running: RunningGateway) -> DownloadSource:
    running.lab.video_jobs["v"] = object()  # type: ignore[assignment]
    return source_at(running, "/v1/videos/v/content")


async def test_a_video_is_downloaded_and_leaves_no_temporary_file(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        assert await store_and_read(running, File(url="x", private=True), VIDEO, video_source(running)) == mp4()
        assert running.scratch == []


async def test_a_disk_that_is_full_during_a_download_is_logged(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Download, "write", write)
    async with open_gateway(works=False) as running:
        with capture_logs() as lines, pytest.raises(OutputNotStored):
            await store_and_read(running, File(url="x", private=True), VIDEO, video_source(running))
    assert [line["reason"] for line in lines if line["event"] == "output not stored"] == ["No space left on device"]


@pytest.mark.parametrize("act", [faults.broken, faults.missing, faults.dropped, faults.cut(), faults.redirect("/x")])
async def test_a_download_that_fails_can_be_tried_again(open_gateway: OpenGateway, act: Any) -> None:
    async with open_gateway(works=False) as running:
        running.lab.contents.always(act)
        with pytest.raises(DownloadFailed):
            await store_and_read(running, File(url="x"), VIDEO, video_source(running))
        assert running.scratch == []


async def test_a_video_that_is_too_large_is_refused(open_gateway: OpenGateway) -> None:
    """The download stops at the limit, whether the length is stated or not, and leaves no file."""
    async with open_gateway(works=False, video_bytes=3 * 2**20) as running:
        for announced in (False, True):
            running.lab.contents.next(faults.huge(8, announced=announced))
            with pytest.raises(UnusableFile, match="too large"):
                await store_and_read(running, File(url="x"), VIDEO, video_source(running))
        assert running.scratch == []


async def test_a_providers_url_inside_the_network_of_the_gateway_is_blocked(open_gateway: OpenGateway) -> None:
    """A URL that is not on the provider's own origin is checked like one that a caller supplied."""
    async with open_gateway(works=False) as running:
        for request in (IMAGE, VIDEO):
            with pytest.raises(UnusableFile, match="blocked by the egress rules"):
                await store_and_read(running, File(url="x"), request, source_at(running, "/files/x.png", trusted=False))
        assert len(running.lab.files) == 0


@pytest.mark.parametrize("kind", ["crashed", "timeout"])
async def test_an_output_that_this_gateway_cannot_convert_is_delivered_as_it_is(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch, kind: Literal["crashed", "timeout"]
) -> None:
    """The provider was paid and did nothing wrong."""

    async def fail(*_: Any, **__: Any) -> None:
        raise WorkFailed(kind, "The work needed more memory than the limit.")

    monkeypatch.setattr(WorkerPool, "run", fail)
    async with open_gateway() as running:
        request = msgspec.structs.replace(IMAGE, values={**IMAGE.values, "output_format": "jpeg"})
        assert await store_and_read(running, File(data=png(8, 8)), request) == png(8, 8)


async def test_an_output_with_too_many_pixels_to_convert_is_delivered_as_it_is(open_gateway: OpenGateway) -> None:
    large = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 7000, 6000) + bytes(9)
    async with open_gateway() as running:
        request = msgspec.structs.replace(IMAGE, values={**IMAGE.values, "output_format": "jpeg"})
        assert await store_and_read(running, File(data=large), request) == large


async def test_a_large_input_image_is_not_copied_as_a_whole(open_gateway: OpenGateway) -> None:
    """Each copy would hold up the event loop. In memory are what was decoded and what came back from its check."""
    buffer = io.BytesIO()
    noise = random.Random(1).randbytes(3 * 1660 * 1660)
    Image.frombytes("RGB", (1660, 1660), noise).save(buffer, "PNG", compress_level=0)
    file = buffer.getvalue()
    source = uri(file)
    async with open_gateway(works=False, child_processes=True) as running:
        await load(running.gateway.media_transfer, UploadedFile(png(8, 8)))
        memory = await peak_bytes(lambda: load(running.gateway.media_transfer, source))
    assert memory < 2.4 * len(file)
