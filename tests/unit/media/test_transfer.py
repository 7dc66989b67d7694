"""Pictures and films come in checked, whatever they are called and wherever they come from."""

import base64
import io
from typing import Any

import pytest
from PIL import Image

from penstock.errors import InvalidRequest
from penstock.media import transfer
from penstock.media.storage import key_of
from penstock.media.transfer import DownloadFailed, LoadedInput, Transfer, UnusableFile
from penstock.providers.spec import File
from penstock.schema import Request, UploadedFile
from penstock.upstream.client import DownloadSource
from tests.fake_providers import faults
from tests.fake_providers.scripted import mp4, png
from tests.gateway import OpenGateway, RunningGateway, sqlite_only

pytestmark = sqlite_only
IMAGE = Request(task="image", model="picture", values={})
VIDEO = Request(task="video", model="film", values={})
NAME = "med_" + "0" * 30 + "00"


def encoded(form: str, size: tuple[int, int] = (8, 4), **options: Any) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size, "teal").save(file, form, **options)
    return file.getvalue()


def uri(data: bytes, content_type: str = "image/png") -> str:
    return f"data:{content_type};base64,{base64.b64encode(data).decode()}"


async def load(gather: Transfer, source: UploadedFile | str) -> LoadedInput:
    return await gather.load("image", source, "image")


# --------------------------------------------------------------------------------------------------------- from callers


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP"])
async def test_pictures_of_each_kind(open_gateway: OpenGateway, form: str) -> None:
    async with open_gateway(works=False) as running:
        data = encoded(form)
        for source in (
            UploadedFile(data, "x.gif", "text/plain"),
            uri(data),
            uri(data, "image/gif"),
            "DATA:" + uri(data)[5:],
        ):
            found = await load(running.gateway.transfer, source)
            assert (found.content_type, found.width, found.height) == (f"image/{form.lower()}", 8, 4)


async def test_what_a_picture_says_about_its_maker_is_removed(open_gateway: OpenGateway) -> None:
    exif = Image.Exif()
    exif[0x010E] = "taken-at-home"
    async with open_gateway(works=False) as running:
        for form in ("JPEG", "PNG", "WEBP"):
            found = await load(running.gateway.transfer, UploadedFile(encoded(form, exif=exif)))
            assert b"taken-at-home" not in found.data


@pytest.mark.parametrize(
    "source",
    [
        UploadedFile(b""),
        UploadedFile(b"GIF89a" + b"\0" * 100),
        UploadedFile(b"<svg xmlns='http://www.w3.org/2000/svg'/>"),
        UploadedFile(png(64, 64)[:60]),
        UploadedFile(b"%!PS-Adobe-3.0 EPSF-3.0\n"),
        "data:image/png;base64,not-base64!",
        "data:image/png;base64,",
        "data:image/png,plain",
    ],
)
async def test_what_is_no_picture(open_gateway: OpenGateway, source: UploadedFile | str) -> None:
    async with open_gateway(works=False) as running:
        with pytest.raises(InvalidRequest) as caught:
            await load(running.gateway.transfer, source)
        assert caught.value.param == "image"


async def test_a_picture_that_is_too_large(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False, image_bytes=1000) as running:
        with pytest.raises(InvalidRequest, match="at most 1000 bytes"):
            await load(running.gateway.transfer, UploadedFile(b"x" * 1001))


async def test_a_picture_that_would_fill_the_memory(open_gateway: OpenGateway) -> None:
    """A small file that unfolds to half a billion pixels; its child says no, and we live on."""
    header = bytearray(png(16, 16))
    header[16:24] = (25_000).to_bytes(4, "big") * 2
    async with open_gateway(works=False) as running:
        with pytest.raises(InvalidRequest):
            await load(running.gateway.transfer, UploadedFile(bytes(header)))
        assert (await load(running.gateway.transfer, UploadedFile(png(16, 16)))).width == 16


@pytest.mark.parametrize("url", ["https://127.0.0.1/x.png", "https://localhost/x.png", "https://[::1]/x.png"])
async def test_addresses_that_are_not_for_strangers(open_gateway: OpenGateway, url: str) -> None:
    async with open_gateway(works=False) as running:
        with pytest.raises(InvalidRequest, match="could not be fetched"):
            await load(running.gateway.transfer, url)


async def test_pictures_are_stored_and_read_back(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        gather = running.gateway.transfer
        found = await load(gather, UploadedFile(png(16, 16)))
        ((described, digest),) = await gather.store_inputs([found], running.clock.now_ms())
        assert (described.size_bytes, len(digest)) == (len(found.data), 32)
        request = Request(task="edit", model="touch", values={}, inputs=(described,))
        references = await gather.inputs(request)
        assert [one.data for one in references["images"]] == [found.data]
        await running.shelf.delete(key_of(described.media_id))


# ------------------------------------------------------------------------------------------------------- from providers


async def kept(
    running: RunningGateway, file: File, request: Request = IMAGE, source: DownloadSource | None = None
) -> bytes:
    found = await running.gateway.transfer.keep(NAME, file, source, request)
    data = b"".join([chunk async for chunk in running.shelf.read(key_of(NAME), 0, 10**9)])
    assert (found.kept.size_bytes, found.kept.media_id) == (len(data), NAME)
    await running.shelf.delete(key_of(NAME))
    return data


@pytest.mark.parametrize(
    "file",
    [
        File(data=png(8, 8)),
        File(data=base64.b64encode(png(8, 8)).decode()),
        File(data=uri(png(8, 8))),
        File(url=uri(png(8, 8))),
    ],
)
async def test_bytes_base64_and_data_uris(open_gateway: OpenGateway, file: File) -> None:
    async with open_gateway(works=False) as running:
        assert await kept(running, file) == png(8, 8)


@pytest.mark.parametrize(
    "file",
    [
        File(data=b""),
        File(data=b"<!doctype html>"),
        File(data="%%%"),
        File(data="abc"),
        File(url="data:image/png;base64,abc"),
        File(data=mp4()),
        File(data="zß水🍌"),
    ],
)
async def test_what_is_not_what_was_asked_for(open_gateway: OpenGateway, file: File) -> None:
    async with open_gateway(works=False) as running:
        with pytest.raises(UnusableFile):
            await kept(running, file)
        assert await running.shelf.keys() == []


TEXT = base64.b64encode(png(8, 8)).decode()
INLINE = {"response_format": "b64_json"}


@pytest.mark.parametrize(
    ("sent", "values", "data", "text"),
    [
        (TEXT, INLINE, None, TEXT),  # as it came
        (uri(png(8, 8)), INLINE, None, TEXT),
        ("\n".join((TEXT[:76], TEXT[76:])), INLINE, png(8, 8), None),  # nothing that a caller's decoder must take
        (png(8, 8), INLINE, png(8, 8), None),
        (TEXT, {}, None, None),  # nobody will ask for it
    ],
)
async def test_what_is_kept_at_hand_for_the_answer(
    open_gateway: OpenGateway, sent: bytes | str, values: dict[str, Any], data: bytes | None, text: str | None
) -> None:
    async with open_gateway(works=False) as running:
        request = Request(task="image", model="picture", values=values)
        found = await running.gateway.transfer.keep(NAME, File(data=sent), None, request)
        assert (found.data, found.base64, found.kept.size_bytes) == (data, text, len(png(8, 8)))
        await running.shelf.delete(key_of(NAME))


async def test_what_was_converted_is_not_answered_as_it_came(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        request = Request(task="image", model="picture", values={**INLINE, "output_format": "gif"})
        found = await running.gateway.transfer.keep(NAME, File(data=TEXT), None, request)
        assert (found.base64, (found.data or b"")[:4]) == (None, b"GIF8")
        await running.shelf.delete(key_of(NAME))


async def test_long_base64_is_read_in_steps(open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "_BASE64_STEP", 8)
    async with open_gateway(works=False) as running:
        assert await kept(running, File(data=TEXT)) == png(8, 8)
        assert await running.gateway.transfer.encoded(png(8, 8)) == TEXT
        for broken in (TEXT[:40] + "=" + TEXT[41:], TEXT[:-1], TEXT + "é"):
            with pytest.raises(InvalidRequest, match="not base64"):
                await load(running.gateway.transfer, f"data:image/png;base64,{broken}")


async def test_a_picture_is_no_film(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        with pytest.raises(UnusableFile, match="image/png"):
            await kept(running, File(data=png(8, 8)), VIDEO)
        assert await kept(running, File(data=mp4()), VIDEO) == mp4()


@pytest.mark.parametrize(
    ("wanted", "content_type"), [("jpeg", "image/jpeg"), ("webp", "image/webp"), ("png", "image/png")]
)
async def test_the_format_that_was_asked_for(open_gateway: OpenGateway, wanted: str, content_type: str) -> None:
    async with open_gateway(works=False) as running:
        request = Request(task="image", model="picture", values={"output_format": wanted, "output_compression": 50})
        found = await running.gateway.transfer.keep(NAME, File(data=encoded("PNG")), None, request)
        assert (found.kept.content_type, found.kept.width, found.kept.height) == (content_type, 8, 4)
        await running.shelf.delete(key_of(NAME))


def at(running: RunningGateway, path: str, *, trusted: bool = True) -> DownloadSource:
    return DownloadSource(f"http://127.0.0.1:{running.lab.port}{path}", {}, trusted=trusted)


async def film(running: RunningGateway) -> DownloadSource:
    running.lab.films["v"] = object()  # type: ignore[assignment]
    return at(running, "/v1/videos/v/content")


async def test_a_film_goes_to_the_disk_as_it_comes(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        assert await kept(running, File(url="x", private=True), VIDEO, await film(running)) == mp4()
        assert running.scratch == []


@pytest.mark.parametrize("act", [faults.broken, faults.missing, faults.dropped, faults.cut(), faults.redirect("/x")])
async def test_trouble_on_the_way_may_pass(open_gateway: OpenGateway, act: Any) -> None:
    async with open_gateway(works=False) as running:
        running.lab.contents.always(act)
        with pytest.raises(DownloadFailed):
            await kept(running, File(url="x"), VIDEO, await film(running))
        assert running.scratch == []


async def test_a_film_without_end(open_gateway: OpenGateway) -> None:
    """It stops at the limit, announced or not, and nothing of it stays."""
    async with open_gateway(works=False, video_bytes=3 * 2**20) as running:
        for announced in (False, True):
            running.lab.contents.next(faults.huge(8, announced=announced))
            with pytest.raises(UnusableFile, match="too large"):
                await kept(running, File(url="x"), VIDEO, await film(running))
        assert running.scratch == []


async def test_a_providers_address_inside_our_network(open_gateway: OpenGateway) -> None:
    """Not on the provider's own origin: guarded like a stranger's, and hopeless."""
    async with open_gateway(works=False) as running:
        for request in (IMAGE, VIDEO):
            with pytest.raises(UnusableFile, match="does not go"):
                await kept(running, File(url="x"), request, at(running, "/files/x.png", trusted=False))
        assert len(running.lab.files) == 0
