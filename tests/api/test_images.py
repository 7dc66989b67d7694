"""The parameters of image generations and edits over HTTP; every output is fetched and decoded, and costs are checked.

Five providers with different limits: `lab` makes up to ten images of any size per call and returns base64; Stability
makes one per call, in base64, of a few shapes, always as PNG; Recraft up to six, as URLs of JPEGs, of listed sizes, and
reports its charge; OpenAI has three sizes; atelier has everything.
"""

import asyncio
import base64
import io
import itertools
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from math import ceil
from typing import Any
from urllib.parse import urlsplit

import pytest
from PIL import Image

from penstock.values import nanos
from tests.api.http_calls import ServedApi, checked_json, form, served_api
from tests.api.raw_http import RawResponse
from tests.fake_providers import faults
from tests.fake_providers.openai import OpenAI
from tests.fake_providers.recraft import Recraft
from tests.fake_providers.scripted import KEY_ENV, ScriptedProvider, mask, png, scripted_provider
from tests.fake_providers.server import FakeProvider, serving
from tests.fake_providers.stability import Stability
from tests.gateway import OpenGateway, sqlite_only

pytestmark = sqlite_only

FORMATS = (None, "png", "jpeg", "gif", "webp", "avif")
RESPONSE_FORMATS = (None, "url", "b64_json")
SIGNATURES = {
    "png": (0, b"\x89PNG\r\n\x1a\n"),
    "jpeg": (0, b"\xff\xd8\xff"),
    "gif": (0, b"GIF8"),
    "webp": (8, b"WEBP"),
    "avif": (4, b"ftypavif"),
}


@cache
def jpeg(width: int, height: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (width, height), "teal").save(file, "JPEG")
    return file.getvalue()


class JpegRecraft(Recraft):
    """Makes images of a sixteenth of the requested size, so that they are small and differ from the request."""

    def _image(self, size: str = "64x64") -> dict[str, str]:
        width, height = (int(side) // 16 for side in size.split("x"))
        return {"image_id": self.new_id(), "url": self.put(jpeg(width, height), "image/jpeg")}


@dataclass(frozen=True)
class ImageModel:
    """A model: the price of an image, how many it makes per call, and what it makes of the default request."""

    model: str
    usd: str
    at_once: int
    size: str
    made: Callable[[int, int], bytes] | None = png  # the provider's own file; None where that cannot be foreseen
    fields: Mapping[str, Any] = field(default_factory=lambda: {"prompt": "a pear", "size": "64x48"})
    slug: str = ""

    @property
    def native(self) -> str:
        return "jpeg" if self.made is jpeg else "png"


EDIT = {"prompt": "make it warmer", "size": "64x48", "image": png(40, 30)}
UPSCALE = {"image": png(32, 24)}
IMAGE_MODELS = {
    "generate": (
        ImageModel("atelier/sketch", "0.001", 10, "64x48", None),
        ImageModel("image-1", "0.04", 10, "64x48", slug="lab"),
        ImageModel(
            "stability/core", "0.03", 1, "64x64", fields={"prompt": "a pear", "size": "64x64"}, slug="stability"
        ),
        ImageModel("recraft-v4", "0.035", 6, "76x56", jpeg, slug="recraft"),
    ),
    "edit": (
        ImageModel("atelier/retouch", "0.001", 10, "64x48", None, {**EDIT, "mask": mask(40, 30)}),
        ImageModel("edit-1", "0.04", 10, "64x48", png, EDIT, "lab"),
        ImageModel("sd3.5-large", "0.065", 1, "64x64", png, EDIT, "stability"),
        ImageModel("recraft-v3", "0.04", 6, "4x4", jpeg, EDIT, "recraft"),
    ),
    "upscale": (
        ImageModel("atelier/enlarge", "0.001", 10, "96x72", None, {**UPSCALE, "scale_factor": 3}),
        ImageModel("stability/fast-upscale", "0.02", 1, "256x192", png, UPSCALE, "stability"),
        ImageModel("recraft-crisp-upscale", "0.004", 1, "4x4", jpeg, UPSCALE, "recraft"),
    ),
}
USUAL = {service.model: service for many in IMAGE_MODELS.values() for service in many}


# ------------------------------------------------------------------------------------------------------------- asking


@dataclass(frozen=True)
class Studio:
    """A gateway with all five providers."""

    api: ServedApi
    providers: Mapping[str, FakeProvider | ScriptedProvider]

    async def call(self, model: str, **fields: Any) -> RawResponse:
        """Make a call as JSON, or as a form when there are input images."""
        fields = {name: value for name, value in {"model": model, **fields}.items() if value is not None}
        if "image" not in fields:
            return await self.api.call("POST", "/compat/v1/images/generations", fields)
        files = [(name, fields.pop(name), f"{name}.png") for name in ("image", "mask") if name in fields]
        body, headers = form(*files, *((name, str(value).encode(), None) for name, value in fields.items()))
        return await self.api.call("POST", "/compat/v1/images/edits", body, headers=headers)

    async def file(self, shown: Mapping[str, str]) -> tuple[bytes, str | None]:
        """An image of a response and, if it was downloaded, its Content-Type."""
        if "b64_json" in shown:
            assert set(shown) == {"b64_json"}
            return base64.b64decode(shown["b64_json"], validate=True), None
        assert set(shown) == {"url"}
        parts = urlsplit(shown["url"])
        response = await self.api.served.call("GET", f"{parts.path}?{parts.query}")
        assert (response.status, response.headers["x-content-type-options"]) == (200, "nosniff")
        return response.body, response.headers["content-type"]

    def submits(self, slug: str) -> int:
        """Return how many calls a provider got."""
        provider = self.providers[slug]
        if isinstance(provider, ScriptedProvider):
            return provider.submits
        return sum(len(endpoint) for name, endpoint in provider.endpoints.items() if name not in ("files", "others"))

    async def check_money(self, request_id: str, usd: Decimal) -> None:
        record = await self.api.running.record(request_id)
        assert (record["status"], record["cost"]) == ("completed", usd)
        moved = await self.api.running.transfers(request_id)
        assert set(moved) == {"hold", "capture"}
        assert moved["capture"] == nanos(usd) <= moved["hold"]


@asynccontextmanager
async def studio(open_gateway: OpenGateway) -> AsyncIterator[Studio]:
    asyncio.get_running_loop().set_debug(False)  # remembering where hundreds of calls began takes half of their time
    fakes = {"stability": Stability(), "recraft": JpegRecraft(), "openai": OpenAI()}
    paths = {"stability": "", "recraft": "/v1", "openai": "/v1"}
    async with AsyncExitStack() as stack:
        lab, annex = [await stack.enter_async_context(scripted_provider(name)) for name in ("lab", "annex")]
        for fake in fakes.values():
            await stack.enter_async_context(serving(fake))
        theirs = {slug: {"base_url": server.url + paths[slug], "key_env": KEY_ENV} for slug, server in fakes.items()}
        providers = {"lab": lab.settings(), **theirs}
        api = await stack.enter_async_context(
            served_api(
                open_gateway,
                labs=(lab, annex),
                providers=providers,
                disabled_providers=(),
                starting_credit_usd="1000",
                egress_allow_cidrs=("127.0.0.0/8",),
            )
        )
        yield Studio(api, {"lab": lab, **fakes})


def format_of(data: bytes) -> str:
    """Check the format by the first bytes and by decoding the whole file."""
    found = [name for name, (start, mark) in SIGNATURES.items() if data[start:].startswith(mark)]
    with Image.open(io.BytesIO(data)) as image:
        image.load()
        assert found == [(image.format or "").lower()]
    return found[0]


def size_of(data: bytes) -> str:
    with Image.open(io.BytesIO(data)) as image:
        return f"{image.width}x{image.height}"


# --------------------------------------------------------------------------------------------------------- the tables


def rows(model: ImageModel) -> Iterator[tuple[str | None, str | None, int]]:
    """Every output format and response format for one image, and some for more than the provider makes per call."""
    several = model.at_once + 1 if model.at_once < 10 else 3
    yield from itertools.product(FORMATS, RESPONSE_FORMATS[1:], (1,))
    yield from itertools.product((None, "gif"), RESPONSE_FORMATS[1:], (several,))
    if model.slug == "lab":
        yield None, None, 1
        yield "webp", None, 10


@pytest.mark.parametrize("task", IMAGE_MODELS)
async def test_every_output_format_response_format_and_number(open_gateway: OpenGateway, task: str) -> None:
    async with studio(open_gateway) as here:
        spent = Decimal(0)
        before, _ = await here.api.running.money()
        for model in IMAGE_MODELS[task]:
            for output_format, response_format, n in rows(model):
                try:
                    spent += await check_row(here, model, output_format, response_format, n)
                except AssertionError as problem:
                    problem.add_note(f"{model.model}, {output_format}, {response_format}, n={n}")
                    raise
        assert await here.api.running.money() == (before - nanos(spent), 0)


async def check_row(
    here: Studio, model: ImageModel, output_format: str | None, response_format: str | None, n: int
) -> Decimal:
    """Make one call and check its images and its cost."""
    submits = here.submits(model.slug) if model.slug else 0
    more = {"output_format": output_format, "response_format": response_format, "n": None if n == 1 else n}
    response = checked_json("ImageResult", await here.call(model.model, **model.fields, **more))
    wanted = output_format or "png"
    assert (response["size"], response["output_format"], len(response["data"])) == (model.size, wanted, n)
    assert all(("url" in image) == (response_format != "b64_json") for image in response["data"])
    for image in response["data"]:
        data, content_type = await here.file(image)
        assert (format_of(data), size_of(data)) == (wanted, model.size)
        assert content_type in (None, f"image/{wanted}")
        if model.made and wanted == model.native:  # a file that already has the format is not changed
            width, height = map(int, model.size.split("x"))
            assert data == model.made(width, height)
    if model.slug:
        assert here.submits(model.slug) - submits == ceil(n / model.at_once)
    usd = n * Decimal(model.usd)
    assert Decimal(str(response["metadata"]["cost"])) == usd
    await here.check_money(response["id"], usd)
    return usd


# --------------------------------------------------------------------------------------------------------------- sizes


@dataclass(frozen=True)
class Shape:
    """Parameters of size, and the size and format of the result."""

    model: str
    size: str
    fields: Mapping[str, Any]
    format: str = "png"
    usd: str = ""


SHAPES = (
    # Any size at all, and proportions of about a megapixel.
    Shape("atelier/sketch", "33x47", {"size": "33x47"}),
    Shape("atelier/sketch", "16x16", {"size": "16x16"}),
    Shape("atelier/sketch", "320x16", {"size": "320x16"}),
    Shape("atelier/sketch", "1024x1024", {"size": None}),
    Shape("atelier/sketch", "1820x1024", {"size": "16:9"}),
    Shape("atelier/sketch", "720x720", {"size": None, "resolution": "720p"}),
    Shape("atelier/sketch", "96x64", {"size": "96x64", "aspect_ratio": "1:1", "resolution": "1080p"}),
    Shape("image-1", "1024x1536", {"size": None, "aspect_ratio": "2:3"}),
    Shape("image-1", "1080x1920", {"size": "9:16", "resolution": "1080p"}),
    # Of what a model has, the nearest shape and then the nearest area; the response says which it was.
    Shape("gpt-image-1.5", "1536x1024", {"size": "16:9"}, usd="0.056242"),
    Shape("gpt-image-1.5", "1024x1536", {"size": "200x900"}, usd="0.056242"),
    Shape("gpt-image-1.5", "1024x1024", {"size": "64x60"}, usd="0.056242"),
    Shape("stability/core", "128x72", {"size": "1024x576"}),
    Shape("stability/core", "64x64", {"size": "100x101"}),
    Shape("recraft-v4", "84x48", {"size": "16:9"}),
    Shape("recraft-v4", "48x96", {"size": "256x512"}),
    # An AVIF has at most 1600 pixels on its longest side; a larger image keeps the provider's format.
    Shape("atelier/sketch", "1600x96", {"size": "1600x96", "output_format": "avif"}, "avif"),
    Shape("atelier/sketch", "1601x96", {"size": "1601x96", "output_format": "avif"}, "png"),
    Shape("image-1", "96x1601", {"size": "96x1601", "output_format": "avif", "n": 2}, "png", "0.08"),
    Shape("image-1", "1601x96", {"size": "1601x96", "output_format": "webp"}, "webp"),
    # An edit takes a size as a generation does; the size of an upscaled image follows from its input.
    Shape("atelier/retouch", "1024x1024", {"size": None, "mask": None}),
    Shape("atelier/retouch", "51x97", {"size": "51x97", "mask": None}),
    Shape("atelier/retouch", "40x30", {"size": "auto"}),
    Shape("gpt-image-1.5", "1536x1024", {"size": "auto", "image": png(40, 30)}, usd="0.058642"),
    Shape("atelier/sketch", "1024x1024", {"size": "auto"}),
    Shape("edit-1", "1024x1024", {"size": None}),
    Shape("edit-1", "1536x1024", {"size": "3:2", "output_format": "jpeg"}, "jpeg"),
    Shape("atelier/enlarge", "64x48", {"scale_factor": None}),
    Shape("atelier/enlarge", "48x36", {"scale_factor": 1.5, "output_format": "gif"}, "gif"),
    Shape("atelier/enlarge", "1640x16", {"image": png(205, 2), "scale_factor": 8, "output_format": "avif"}, "png"),
)


async def test_every_way_to_give_a_size(open_gateway: OpenGateway) -> None:
    async with studio(open_gateway) as here:
        for shape in SHAPES:
            usual = USUAL.get(shape.model, ImageModel(shape.model, "", 10, ""))
            fields = {**usual.fields, "response_format": "b64_json", **shape.fields}
            response = checked_json("ImageResult", await here.call(shape.model, **fields))
            for image in response["data"]:
                data, _ = await here.file(image)
                found = (size_of(data), format_of(data), response["size"], response["output_format"])
                assert found == (shape.size, shape.format, shape.size, shape.format), shape
            await here.check_money(response["id"], Decimal(shape.usd or usual.usd))


# -------------------------------------------------------------------------------------------------- quality and trouble


async def test_compression_changes_lossy_formats_only(open_gateway: OpenGateway) -> None:
    async with studio(open_gateway) as here:
        for output_format, smaller in (("jpeg", True), ("webp", True), ("avif", True), ("png", False), ("gif", False)):
            lengths = []
            for compression in (None, 20):
                fields = {"output_format": output_format, "output_compression": compression, "size": "256x256"}
                response = await here.call("atelier/sketch", prompt="a pear", response_format="b64_json", **fields)
                data, _ = await here.file(checked_json("ImageResult", response)["data"][0])
                assert format_of(data) == output_format
                lengths.append(len(data))
            assert (lengths[1] < lengths[0] / 2) == smaller, (output_format, lengths)


async def test_some_of_several_images_fail(open_gateway: OpenGateway) -> None:
    """The images that were made are returned and charged, the others are not."""
    async with studio(open_gateway) as here:
        stability = here.providers["stability"]
        assert isinstance(stability, FakeProvider)
        stability.next("generate", faults.rejected, faults.rejected)
        fields = {"prompt": "a pear", "size": "64x64", "n": 5, "output_format": "webp"}
        response = checked_json("ImageResult", await here.call("stability/core", **fields))
        assert [format_of((await here.file(image))[0]) for image in response["data"]] == ["webp"] * 3
        assert [attempt["outcome"] for attempt in response["metadata"]["attempts"]] == [
            *["rejected"] * 2,
            *["made"] * 3,
        ]
        assert response["metadata"]["missing"] == 2
        await here.check_money(response["id"], 3 * Decimal("0.03"))
