"""Any image or video model of OpenRouter: described by its lists, held at the most of them, charged as reported."""

from typing import TYPE_CHECKING

from penstock.generations import endpoints
from penstock.values import nanos
from tests.fake_providers.openrouter import LISTED_IMAGES, LISTED_VIDEOS, OpenRouter
from tests.gateway import OpenGateway
from tests.late_import import LateImport
from tests.providers.calls import IMAGE_URI, create_chat, create_image, create_video, edit_image, gateway_for

if TYPE_CHECKING:
    import openrouter
else:
    openrouter = LateImport("openrouter")

AT = "/api/v1"
IMAGE = "openrouter/acme/painter-2"
VIDEO = "openrouter/acme/filmer-3"


def test_the_lists_have_the_form_that_its_own_client_reads() -> None:
    openrouter.components.ImageModelsListResponse.model_validate({"data": LISTED_IMAGES})
    openrouter.components.VideoModelsListResponse.model_validate({"data": LISTED_VIDEOS})


async def test_an_image_and_an_edit(open_gateway: OpenGateway) -> None:
    router = OpenRouter()
    async with gateway_for(open_gateway, "openrouter", router, AT) as running:
        before, _ = await running.money()
        made = await create_image(
            running, model=IMAGE, prompt="a fox", size="2048x1152", quality="hd", seed=3, background="opaque"
        )
        assert made["status"] == "completed"
        assert router.received("images")[0].fields == {
            "model": "acme/painter-2",
            "prompt": "a fox",
            "aspect_ratio": "16:9",
            "resolution": "1K",
            "quality": "high",
            "seed": 3,
            "background": "opaque",
        }
        assert before - (await running.money())[0] == nanos("0.03")  # 0.04 is reported, and 0.03 was held
        assert (await edit_image(running, model=IMAGE))["status"] == "completed"
        assert len(router.received("images")[1].fields["input_references"]) == 1
        assert len(router.received("image_models")) == 1


async def test_a_long_prompt_is_held_for_with_all_its_bytes(open_gateway: OpenGateway) -> None:
    """A rare letter may be as many tokens as it has bytes, and a prompt may have 32,000 letters."""
    router = OpenRouter()
    router.image_prices.append({"billable": "input_text", "cost_usd": 0.00001, "unit": "token"})
    async with gateway_for(open_gateway, "openrouter", router, AT) as running:
        for prompt, micros in (("a fox", 30_050), ("\N{EGYPTIAN HIEROGLYPH A001}" * 32_000, 1_310_000)):
            call = running.call(
                {"model": IMAGE, "prompt": prompt}, endpoint="/compat/v1/images/generations", query={"dryRun": "true"}
            )
            dry = (await endpoints.make_images(running.gateway, call)).json
            assert dry["total_cost_micros"] == micros


async def test_a_video(open_gateway: OpenGateway) -> None:
    router = OpenRouter()
    async with gateway_for(open_gateway, "openrouter", router, AT) as running:
        call = running.call(
            {"model": VIDEO, "prompt": "a fox", "seconds": 4, "resolution": "720p"}, query={"dryRun": "true"}
        )
        dry = (await endpoints.start_video(running.gateway, call)).json
        assert dry["total_cost_micros"] == 480_000
        before, _ = await running.money()
        video = await create_video(
            running,
            model=VIDEO,
            prompt="a fox",
            seconds=4,
            resolution="1080p",
            generate_audio=True,
            input_reference={"image_url": IMAGE_URI},
        )
        assert video["status"] == "completed"
        sent = router.received("video")[0].fields
        assert (sent["duration"], sent["resolution"], sent["generate_audio"]) == (4, "1080p", True)
        assert [frame["frame_type"] for frame in sent["frame_images"]] == ["first_frame"]
        assert before - (await running.money())[0] == nanos("0.42")


async def test_chat_with_the_same_name_is_still_chat(open_gateway: OpenGateway) -> None:
    async with gateway_for(open_gateway, "openrouter", OpenRouter(), AT) as running:
        await running.gateway.live_models.prepare(IMAGE, running.caller.org_id)
        _, record = await create_chat(running, model=IMAGE)
        assert (record["status"], record["executed_model"]) == ("completed", IMAGE)
