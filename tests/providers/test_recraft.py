"""Recraft: OpenAI's client, which its documentation uses, against the fake provider, then the gateway."""

from base64 import b64decode
from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from openai import AuthenticationError, BadRequestError, OpenAI

from penstock.errors import InvalidRequest
from penstock.generations.endpoints import make_images
from tests.fake_providers.recraft import Recraft
from tests.fake_providers.scripted import KEY, png
from tests.fake_providers.server import responds, serve_in_thread
from tests.gateway import OpenGateway
from tests.providers.calls import MASK_URI, create_image, edit_image, gateway_for, mask_seen

# ---------------------------------------------------------------------------------------------------- OpenAI's client


@pytest.fixture
def client() -> Iterator[OpenAI]:
    with (
        serve_in_thread(Recraft()) as provider,
        OpenAI(base_url=f"{provider.url}/v1", api_key=KEY, max_retries=0) as client,
    ):
        yield client


def posted(client: OpenAI, path: str, files: dict[str, bytes], **body: Any) -> Any:
    """As the examples have it, for what OpenAI has no method for."""
    options: Any = {"headers": {"Content-Type": "multipart/form-data"}}
    return client.post(path=path, cast_to=object, options=options, body=body, files=files)


def test_client_makes_images(client: OpenAI) -> None:
    made = client.images.generate(prompt="race car on a track", model="recraftv3", n=2)
    assert [bool(item.url) for item in made.data or ()] == [True, True]


def test_client_uses_tools(client: OpenAI) -> None:
    edited = posted(client, "/images/inpaint", {"image": png(8, 8), "mask": png(8, 8)}, prompt="moon")
    assert edited["data"][0]["url"]
    enlarged = posted(client, "/images/crispUpscale", {"file": png(8, 8)})
    assert (enlarged["credits"], bool(enlarged["image"]["url"])) == (4, True)


def test_client_gets_errors(client: OpenAI) -> None:
    with pytest.raises(BadRequestError, match="strength is required"):
        posted(client, "/images/imageToImage", {"image": png(8, 8)}, prompt="winter")
    with pytest.raises(AuthenticationError):
        client.with_options(api_key="nobody").images.generate(prompt="a fox")


# --------------------------------------------------------------------------------------------------------- the gateway


async def test_images_cost_the_units_they_took(open_gateway: OpenGateway) -> None:
    recraft = Recraft()
    async with gateway_for(open_gateway, "recraft", recraft, "/v1") as running:
        record = await create_image(running, model="recraft-v4", n=8, size="16:9")
        assert (record["status"], str(record["cost"])) == ("completed", "0.28")
        assert str((await create_image(running, model="recraft-v4-pro"))["cost"]) == "0.21"
    first, second, pro = recraft.received("generate")
    assert sorted((first.fields["n"], second.fields["n"])) == [2, 6]
    assert first.fields | {"n": 0} == {
        "prompt": "a pear", "n": 0, "image_format": "png", "size": "1344x768", "model": "recraftv4_1",
    }  # fmt: skip
    assert pro.fields["size"] == "2048x2048"


async def test_vector_images_are_cleaned_and_saved_instead_of_shown(open_gateway: OpenGateway) -> None:
    recraft = Recraft()
    async with gateway_for(open_gateway, "recraft", recraft, "/v1") as running:
        made = await running.image(model="recraft-v4-vector", response_format="url")
        assert (made["output_format"], made["size"], str(made["metadata"]["cost"])) == ("svg", "64x32", "0.08")
        url = urlsplit(made["data"][0]["url"])
        query = dict(parse_qsl(url.query))
        opened = await running.gateway.media.open(url.path.removeprefix("/m/"), query, None)
        assert opened.chunks is not None
        content = b"".join([chunk async for chunk in opened.chunks])
        inline = await running.image(model="recraft-v4-vector", response_format="b64_json", output_format="svg")
        assert b64decode(inline["data"][0]["b64_json"]) == content
        with pytest.raises(InvalidRequest, match="`output_format` of recraft-v4-vector must be `svg`"):
            await running.image(model="recraft-v4-vector", output_format="png")
        with pytest.raises(InvalidRequest, match="`output_format` of recraft-v4 must be one of `png`"):
            await running.image(model="recraft-v4", output_format="svg")
    assert b"<path" in content
    assert b"alert" not in content
    names = ("content-type", "x-content-type-options", "content-security-policy")
    assert [opened.headers[name] for name in names] == ["image/svg+xml", "nosniff", "default-src 'none'; sandbox"]
    assert opened.headers["content-disposition"].startswith('attachment; filename="med_')


async def test_vector_models_differ_in_size_and_price(open_gateway: OpenGateway) -> None:
    """The price in the table is what is held; the response says what is charged."""
    recraft = Recraft()
    async with gateway_for(open_gateway, "recraft", recraft, "/v1") as running:
        for name, upstream, size, usd in (
            ("recraft-v4-vector", "recraftv4_1_vector", "1024x1024", "0.08"),
            ("recraft-v4-pro-vector", "recraftv4_1_pro_vector", "2048x2048", "0.3"),
        ):
            body = {"model": name, "prompt": "a pear"}
            dry = running.call(body, query={"dryRun": "true"}, endpoint="/compat/v1/images/generations")
            assert (await make_images(running.gateway, dry)).json["total_cost_micros"] == int(Decimal(usd) * 1_000_000)
            record = await create_image(running, model=name)
            assert (record["status"], str(record["cost"])) == ("completed", usd)
            sent = recraft.received("generate")[-1].fields
            assert sent == {"prompt": "a pear", "n": 1, "size": size, "model": upstream}


async def test_edits_with_a_mask_and_without(open_gateway: OpenGateway) -> None:
    recraft = Recraft()
    async with gateway_for(open_gateway, "recraft", recraft, "/v1") as running:
        assert (await edit_image(running, model="recraft-v3", mask=MASK_URI))["status"] == "completed"
        assert (await edit_image(running, model="recraft-v3", strength=0.2))["status"] == "completed"
    masked, free = recraft.received("tool")
    assert (masked.path, free.path) == ("/v1/images/inpaint", "/v1/images/imageToImage")
    assert (masked.fields["model"], mask_seen(masked.fields["mask"])) == ("recraftv3", ("L", 255, 0))
    assert free.fields["strength"] == "0.2"


async def test_upscaling(open_gateway: OpenGateway) -> None:
    recraft = Recraft()
    async with gateway_for(open_gateway, "recraft", recraft, "/v1") as running:
        record = await edit_image(running, model="recraft-crisp-upscale")
        assert (record["status"], str(record["cost"])) == ("completed", "0.004")
        record = await edit_image(running, model="recraft-creative-upscale", scale_factor=2)
        assert record["status"] == "completed", "it has a factor of its own"
    assert recraft.received("tool")[1].fields == {"file": png(64, 48)}


@pytest.mark.parametrize(
    ("response", "status", "code"),
    [
        ({"code": "invalid_request", "message": "Rejected by content policy."}, 400, "CONTENT_POLICY_VIOLATION"),
        ({"code": "invalid_request", "message": "size is not supported"}, 400, "INVALID_REQUEST"),
        ({"created": 1, "credits": 35, "data": []}, 200, "ALL_PROVIDERS_EXHAUSTED"),
        ({"code": "too_many_requests", "message": "Slow down."}, 429, "RATE_LIMITED"),
        ({"code": "internal", "message": "Broken."}, 500, "ALL_PROVIDERS_EXHAUSTED"),
    ],
)
async def test_images_that_fail(open_gateway: OpenGateway, response: object, status: int, code: str) -> None:
    recraft = Recraft()
    recraft.next("generate", responds(response, status))
    async with gateway_for(open_gateway, "recraft", recraft, "/v1") as running:
        record = await create_image(running, model="recraft-v3")
        assert (record["status"], record["error_code"]) == ("upstream_failure", code)
        assert await running.money() == (10_000_000_000, 0), "nothing is charged"
