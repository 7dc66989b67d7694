"""AUTOMATIC1111's web UI: a common client against the fake provider, then the gateway."""

import base64
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image

from penstock.errors import InvalidRequest
from tests.fake_providers.a1111 import Automatic1111
from tests.fake_providers.server import responds, serve_in_thread
from tests.gateway import OpenGateway
from tests.late_import import LateImport
from tests.providers.calls import IMAGE_URI, MASK_URI, create_image, edit_image, gateway_for, mask_seen

if TYPE_CHECKING:
    import webuiapi  # type: ignore[import-untyped]
else:
    webuiapi = LateImport("webuiapi")

# --------------------------------------------------------------------------------------------------------------- client


class Locked(Automatic1111):
    credential = ("authorization", "Basic " + base64.b64encode(b"painter:secret").decode())


@pytest.fixture
def web() -> Iterator[Automatic1111]:
    with serve_in_thread(Locked()) as provider:
        yield provider


@pytest.fixture
def client(web: Automatic1111) -> Any:
    return webuiapi.WebUIApi(baseurl=f"{web.url}/sdapi/v1", username="painter", password="secret")


def test_client_draws(client: Any) -> None:
    made = client.txt2img(prompt="a fox", width=96, height=64, n_iter=2, save_images=True)
    assert [image.size for image in made.images] == [(8, 8), (96, 64), (96, 64)], "a sheet of all comes first"
    assert made.info == {"seed": 7}


def test_client_redraws_and_enlarges(client: Any) -> None:
    with Image.new("RGB", (64, 48)) as image:
        assert client.img2img(images=[image], prompt="a fox", width=64, height=48).image.size == (64, 48)
        assert client.extra_single_image(image, upscaling_resize=2).image.size == (128, 96)
        with pytest.raises(RuntimeError, match="Init image not found"):
            client.img2img(images=[], prompt="a fox")


# ---------------------------------------------------------------------------------------------------------- the gateway


async def test_self_hosted_images_cost_nothing(open_gateway: OpenGateway) -> None:
    web = Automatic1111()
    async with gateway_for(open_gateway, "a1111", web) as running:
        record = await create_image(running, model="a1111/loaded", n=6, size="120x64", negative_prompt="rain")
        assert (record["status"], str(record["cost"])) == ("completed", "0")
        assert await running.money() == (10_000_000_000, 0)
    first, second = web.received("draw")
    assert sorted((first.fields["n_iter"], second.fields["n_iter"])) == [2, 4]
    assert first.fields | {"n_iter": 0} == {
        "prompt": "a pear", "negative_prompt": "rain", "n_iter": 0, "width": 120, "height": 64, "save_images": False,
    }  # fmt: skip


async def test_a_broke_caller_is_served(open_gateway: OpenGateway) -> None:
    async with gateway_for(open_gateway, "a1111", Automatic1111()) as running:
        poor = await running.create_caller_in_new_org("0")
        made = await running.image(caller=poor, model="a1111/loaded")
        assert str(made["metadata"]["cost"]) == "0"


async def test_models_are_listed_with_their_price(open_gateway: OpenGateway) -> None:
    async with gateway_for(open_gateway, "a1111", Automatic1111()) as running:
        shown = running.gateway.catalog.describe("a1111/loaded")
        assert {(price["task"], price["usd"]) for price in shown["pricing"]} == {("image", "0"), ("edit", "0")}


async def test_edits_are_as_large_as_the_image(open_gateway: OpenGateway) -> None:
    web = Automatic1111()
    async with gateway_for(open_gateway, "a1111", web) as running:
        assert (await edit_image(running, model="a1111/loaded", mask=MASK_URI))["status"] == "completed"
    sent = web.received("redraw")[0].fields
    assert sent["init_images"] == [IMAGE_URI.partition(",")[2]]
    assert (sent["width"], sent["height"]) == (88, 64), "or as small as the server draws"
    assert mask_seen(base64.b64decode(sent["mask"])) == ("L", 255, 0)


async def test_enlarging(open_gateway: OpenGateway) -> None:
    web = Automatic1111()
    async with gateway_for(open_gateway, "a1111", web) as running:
        record = await edit_image(running, model="a1111/upscale", prompt=None, scale_factor=3)
        assert record["status"] == "completed"
    assert (
        web.received("enlarge")[0].fields["upscaling_resize"],
        web.received("enlarge")[0].fields["resize_mode"],
    ) == (3, 0)


@pytest.mark.parametrize(
    "name",
    [
        "override_settings",
        "script_name",
        "alwayson_scripts",
        "save_images",
        "n_iter",
        "enable_hr",
        "hr_checkpoint_name",
    ],
)
async def test_callers_do_not_reach_into_the_server(open_gateway: OpenGateway, name: str) -> None:
    async with gateway_for(open_gateway, "a1111", Automatic1111()) as running:
        with pytest.raises(InvalidRequest, match=name):
            await create_image(running, model="a1111/loaded", **{name: "x"})


@pytest.mark.parametrize(
    ("response", "status", "words"),
    [
        (
            {"error": "OutOfMemoryError", "detail": "", "body": "", "errors": "CUDA out of memory."},
            500,
            "out of memory",
        ),
        ({"detail": "Incorrect username or password"}, 401, "did not accept the gateway's account"),
        ({"images": [], "parameters": {}, "info": ""}, 200, "success without a file"),
    ],
)
async def test_images_that_fail(open_gateway: OpenGateway, response: object, status: int, words: str) -> None:
    web = Automatic1111()
    web.next("draw", responds(response, status))
    async with gateway_for(open_gateway, "a1111", web) as running:
        record = await create_image(running, model="a1111/loaded")
        assert (record["status"], words in record["error_message"]) == ("upstream_failure", True)
