"""Models that no table lists: called with what fal's own catalogue says about them, and billed by what fal reports."""

import asyncio
import base64
from decimal import Decimal
from math import ceil
from typing import Any

import pytest

from penstock.api.endpoints import models
from penstock.errors import InvalidRequest, ModelDisabled, ModelNotFound, PermissionDenied, UpstreamError
from penstock.generations import endpoints
from penstock.schema import Caller
from penstock.values import nanos
from tests.fake_providers.fal_catalogue import FalWithCatalogue
from tests.fake_providers.scripted import mp4
from tests.fake_providers.server import responds
from tests.gateway import OpenGateway, RunningGateway
from tests.providers.calls import IMAGE_URI, create_image, create_video, edit_image
from tests.providers.fal_gateway import with_fal

IMAGE = "fal/fal-ai/hidream-i1-full"
VIDEO = "fal/fal-ai/ltx-2.3/text-to-video"
UPSCALE = "fal/fal-ai/esrgan"
VIDEO_UPSCALE = "fal/fal-ai/topaz/upscale/video"
INPUT_VIDEO = {"video_url": "data:video/mp4;base64," + base64.b64encode(mp4(2)).decode()}  # of 64x64
DAY = 86_400.0


async def test_an_image_is_made_and_billed_by_what_fal_counted(open_gateway: OpenGateway) -> None:
    fal = FalWithCatalogue()
    fal.billed["fal-ai/hidream-i1-full"] = "0.786"
    async with with_fal(open_gateway, fal) as running:
        before, _ = await running.money()
        record = await create_image(
            running,
            model=IMAGE,
            prompt="fox",
            size="1024x768",
            seed=7,
            num_inference_steps=20,
            negative_prompt="rain",
        )
        assert (record["status"], record["executed_model"]) == ("completed", IMAGE)
        assert fal.received("submit")[0].fields == {
            "prompt": "fox",
            "image_size": {"width": 1024, "height": 768},
            "seed": 7,
            "num_inference_steps": 20,
            "negative_prompt": "rain",
            "output_format": "png",
        }
        after, held = await running.money()
        assert (before - after, held) == (nanos("0.0393"), 0)


async def test_a_video_is_held_with_a_ceiling_and_billed_to_the_digit(open_gateway: OpenGateway) -> None:
    fal = FalWithCatalogue()
    fal.billed["fal-ai/ltx-2.3/text-to-video"] = "6.041"
    async with with_fal(open_gateway, fal) as running:
        before, _ = await running.money()
        dry = await running.video(model=VIDEO, prompt="a fox", seconds=6, resolution="1080p", query={"dryRun": "true"})
        assert dry.json["total_cost_micros"] > 240_000
        video = await create_video(running, model=VIDEO, prompt="a fox", seconds=6, resolution="1080p")
        assert video["status"] == "completed"
        sent = fal.received("submit")[0].fields
        assert (sent["duration"], sent["resolution"], sent["aspect_ratio"]) == ("6", "1080p", "16:9")
        after, held = await running.money()
        assert (before - after, held) == (nanos("0.24164"), 0)


async def test_a_caller_cannot_make_a_video_cheap_by_a_length_that_the_model_does_not_take(
    open_gateway: OpenGateway,
) -> None:
    """The model makes five seconds whatever `seconds` says, and would make more frames if it were sent a number."""
    fal = FalWithCatalogue()
    fal.billed["fal-ai/ltx-2.3/text-to-video"] = "5"
    properties = fal.described["fal-ai/ltx-2.3/text-to-video"]["input"]["properties"]
    del properties["duration"]
    properties["num_frames"] = {"type": "integer", "default": 121}
    async with with_fal(open_gateway, fal) as running:
        before, _ = await running.money()
        assert (await create_video(running, model=VIDEO, prompt="a fox", seconds=0.001))["status"] == "completed"
        after, held = await running.money()
        assert (before - after, held) == (nanos("0.20"), 0)
        with pytest.raises(InvalidRequest, match="num_frames"):
            await create_video(running, model=VIDEO, prompt="a fox", num_frames=1000)


async def test_an_upscaler_by_compute_time_needs_no_prompt(open_gateway: OpenGateway) -> None:
    fal = FalWithCatalogue()
    fal.billed["fal-ai/esrgan"] = "3.5"
    async with with_fal(open_gateway, fal) as running:
        before, _ = await running.money()
        call = running.call(
            {"model": UPSCALE, "image": IMAGE_URI, "scale_factor": 4},
            endpoint="/compat/v1/images/edits",
            headers={"prefer": "respond-async"},
        )
        started = await endpoints.edit_images(running.gateway, call)
        record = await running.wait_for_request(started.json["id"])
        assert record["status"] == "completed"
        sent = fal.received("submit")[0].fields
        assert sent["scale"] == 4
        assert sent["image_url"].startswith("data:image/png;base64,")
        after, held = await running.money()
        assert (before - after, held) == (nanos("0.003885"), 0)


async def test_a_video_is_upscaled_by_a_factor_or_to_a_resolution(open_gateway: OpenGateway) -> None:
    """Its length is measured, and held ten times: what a second costs depends on the size of the output."""
    fal = FalWithCatalogue()
    fal.prices["fal-ai/topaz/upscale/video"] = (0.01, "seconds")
    fal.billed["fal-ai/topaz/upscale/video"] = "2.5"
    fal.prices["fal-ai/bytedance-upscaler/upscale/video"] = (0.01, "seconds")
    asked: dict[str, Any] = {"model": VIDEO_UPSCALE, "prompt": None, "input_reference": INPUT_VIDEO}
    async with with_fal(open_gateway, fal) as running:
        before, _ = await running.money()
        dry = await running.video(**asked, query={"dryRun": "true"})
        assert dry.json["total_cost_micros"] == 600_000, "30 cents a second at least, as a cent is a part of the price"
        videos = [await create_video(running, **asked, **body) for body in ({}, {"scale_factor": 4}, {"size": "96x96"})]
        assert [(video["status"], video["size"]) for video in videos] == [
            ("completed", "128x128"), ("completed", "256x256"), ("completed", "96x96"),
        ]  # fmt: skip
        after, held = await running.money()
        assert (before - after, held) == (nanos("0.075"), 0)
        other = {**asked, "model": "fal/fal-ai/bytedance-upscaler/upscale/video"}
        assert (await create_video(running, **other, scale_factor=30))["status"] == "completed"
    sent = [request.fields for request in fal.received("submit")]
    assert [fields.get("upscale_factor") for fields in sent] == [2.0, 4, 1.5, None]
    assert (sent[0]["video_url"], sent[3]["target_resolution"]) == (INPUT_VIDEO["video_url"], "4k")


async def test_a_video_is_edited_and_extended(open_gateway: OpenGateway) -> None:
    fal = FalWithCatalogue()
    edit, extend = "fal-ai/wan/v2.7/edit-video", "fal-ai/ltx-2.3/extend-video"
    fal.prices |= {edit: (0.1, "seconds"), extend: (0.06, "seconds")}
    async with with_fal(open_gateway, fal) as running:
        edited = await create_video(running, model=f"fal/{edit}", input_reference=INPUT_VIDEO, resolution="1080p")
        extended = await create_video(
            running, model=f"fal/{extend}", input_reference={**INPUT_VIDEO, "role": "extend"}, seconds=7
        )
        with pytest.raises(InvalidRequest, match="`input_reference` with a video to edit is required"):
            await running.video(model=f"fal/{edit}", video_url="https://videos.test/fox.mp4")
    assert [video["status"] for video in (edited, extended)] == ["completed", "completed"]
    assert [video["seconds"] for video in (edited, extended)] == ["2", "7"]
    first, second = [request.fields for request in fal.received("submit")]
    uri = INPUT_VIDEO["video_url"]
    assert first == {"prompt": "a train", "video_url": uri, "aspect_ratio": "1:1", "resolution": "1080p"}
    assert second == {"prompt": "a train", "video_url": uri, "duration": 7}


async def test_what_the_schema_refuses_is_refused_before_anything_is_sent(open_gateway: OpenGateway) -> None:
    async with with_fal(open_gateway, fal := FalWithCatalogue()) as running:
        for body, words in (
            ({"num_inference_steps": "many"}, "must be a number"),
            ({"enable_safety_checker": "yes"}, "must be a boolean"),
            ({"loras": [{"scale": 1}]}, "lacks `path`"),
            ({"nonsense": 1}, "is not a parameter of this model."),
            ({"guidance_scal": 4}, "is not a parameter of this model. Did you mean `guidance_scale`?"),
            ({"webhook_url_extra": "x"}, "is not a parameter"),
            ({"sync_mode": True}, "is not a parameter"),
        ):
            with pytest.raises(InvalidRequest) as caught:
                await running.image(model=IMAGE, prompt="a fox", **body)
            assert words in caught.value.message, (body, caught.value.message)
        assert fal.received("submit") == []


async def test_many_calls_ask_the_catalogue_once_and_a_restart_not_at_all(open_gateway: OpenGateway) -> None:
    async with with_fal(open_gateway, fal := FalWithCatalogue()) as running:
        await asyncio.gather(*(running.gateway.live_models.prepare(IMAGE, running.caller.org_id) for _ in range(20)))
        await running.gateway.live_models.prepare(IMAGE, running.caller.org_id)
        assert len(fal.received("catalogue")) == len(fal.received("price")) == 1
        rows = await running.rows("SELECT provider, upstream FROM live_models")
        assert rows == [{"provider": "fal", "upstream": "fal-ai/hidream-i1-full"}]


async def test_an_outage_of_the_catalogue_breaks_nothing_that_worked(open_gateway: OpenGateway) -> None:
    async with with_fal(open_gateway, fal := FalWithCatalogue()) as running:
        await create_image(running, model=IMAGE, prompt="a fox")
        fal.always("price", responds({"detail": "out of order"}, 503))
        await renewed(running, fal, 2)
        assert (await create_image(running, model=IMAGE, prompt="a fox"))["status"] == "completed"
        with pytest.raises(UpstreamError, match="could not be asked"):
            await running.image(model="fal/fal-ai/fast-sdxl", prompt="a fox")
        fal.always("catalogue", responds({"detail": "out of order"}, 503))
        running.clock.advance(DAY)
        for _ in range(2):
            assert (await create_image(running, model=IMAGE, prompt="a fox"))["status"] == "completed"
        with pytest.raises(UpstreamError, match="could not be asked"):
            await running.image(model="fal/fal-ai/fast-sdxl", prompt="a fox")


async def test_a_changed_schema_is_used_and_an_unreadable_one_is_not(open_gateway: OpenGateway) -> None:
    async with with_fal(open_gateway, fal := FalWithCatalogue()) as running:
        await create_image(running, model=IMAGE, prompt="a fox")
        described = fal.described["fal-ai/hidream-i1-full"]
        described["input"]["properties"]["mood"] = {"type": "string", "enum": ["calm", "wild"]}
        await renewed(running, fal, 2)
        await create_image(running, model=IMAGE, prompt="a fox", mood="wild")
        assert fal.received("submit")[-1].fields["mood"] == "wild"
        fal.described["fal-ai/hidream-i1-full"] = {"input": {"$ref": "#/components/schemas/Gone"}, "output": {}}
        await renewed(running, fal, 3)
        fal.described["fal-ai/hidream-i1-full"] = described
        assert (await create_image(running, model=IMAGE, prompt="a fox", mood="calm"))["status"] == "completed"


async def renewed(running: RunningGateway, fal: FalWithCatalogue, times: int) -> None:
    """Let a day pass, and wait until the catalogue was asked so many times in all."""
    running.clock.advance(DAY)
    await running.gateway.live_models.prepare(IMAGE, running.caller.org_id)
    await fal.endpoints["catalogue"].reached(times)
    await asyncio.gather(*running.gateway.live_models._under_way.values())


async def test_a_model_without_a_price_follows_the_operators_rule(open_gateway: OpenGateway) -> None:
    fal = FalWithCatalogue()
    async with with_fal(open_gateway, fal) as running:
        with pytest.raises(ModelDisabled, match="publishes no price"):
            await running.image(model="fal/fal-ai/fast-sdxl", prompt="a fox")
    async with with_fal(open_gateway, fal, unknown_prices="flag") as running:
        before, _ = await running.money()
        assert (await create_image(running, model="fal/fal-ai/fast-sdxl", prompt="a fox"))["status"] == "completed"
        assert (await running.money())[0] == before
    prices = {"fal/*": "0.5", IMAGE: "0.7", "fal/fal-ai/flux-1/krea": "0.2"}
    tables = {name: {"price": {"unit": "image", "usd": usd}} for name, usd in prices.items()}
    async with with_fal(open_gateway, fal, models=tables) as running:
        for model, usd in (("fal/fal-ai/fast-sdxl", "0.5"), (IMAGE, "0.7"), ("fal/fal-ai/flux-1/krea", "0.2")):
            before, _ = await running.money()
            await create_image(running, model=model, prompt="a fox")
            assert before - (await running.money())[0] == nanos(usd)


async def test_a_price_that_its_provider_withdraws_switches_the_model_off(open_gateway: OpenGateway) -> None:
    async with with_fal(open_gateway, fal := FalWithCatalogue()) as running:
        await create_image(running, model=IMAGE, prompt="a fox")
        del fal.prices["fal-ai/hidream-i1-full"]
        await renewed(running, fal, 2)
        for _ in range(2):
            with pytest.raises(ModelDisabled, match="publishes no price"):
                await running.image(model=IMAGE, prompt="a fox")


async def test_keys_and_operators_decide_which_models_may_be_called(open_gateway: OpenGateway) -> None:
    async with with_fal(open_gateway, fal := FalWithCatalogue()) as running:
        caller = running.caller
        few = Caller(caller.org_id, caller.key_id, caller.scopes, models=("flux-dev", "fal/fal-ai/kling*"))
        with pytest.raises(PermissionDenied, match="may not use"):
            await running.image(caller=few, model=IMAGE, prompt="a fox")
        assert fal.received("catalogue") == []
    async with with_fal(open_gateway, fal := FalWithCatalogue(), live_catalogues=[]) as running:
        with pytest.raises(ModelNotFound):
            await running.image(model=IMAGE, prompt="a fox")
        assert fal.received("catalogue") == []


async def test_models_that_do_not_exist_or_make_something_else_are_not_found(open_gateway: OpenGateway) -> None:
    async with with_fal(open_gateway, fal := FalWithCatalogue()) as running:
        for model, words in (
            ("fal/fal-ai/nothing-here", "no such endpoint"),
            ("fal/fal-ai/hunyuan3d-v21", "neither images nor videos nor sounds"),
            ("fal/hidream-i1-full", "does not exist. fal's own models are named `fal/owner/name`"),
            ("fal/flux-2-prro", "Did you mean `flux-2-pro`? fal's own models are named `fal/owner/name`"),
            ("fal/../../v1/keys", "does not exist"),
            ("fal/fal-ai/x?endpoint_id=y", "does not exist"),
        ):
            for _ in range(2):
                with pytest.raises(ModelNotFound) as caught:
                    await running.image(model=model, prompt="a fox")
                assert words in caught.value.message
        assert len(fal.received("catalogue")) == 2
        with pytest.raises(InvalidRequest, match="it supports text-to-video"):
            await running.image(model=VIDEO, prompt="a fox")


async def test_a_video_goes_on_in_a_process_that_was_told_nothing(open_gateway: OpenGateway) -> None:
    async with with_fal(open_gateway, fal := FalWithCatalogue()) as running:
        started = await running.video(model=VIDEO, prompt="a fox", seconds=6)
        catalog = running.gateway.catalog
        catalog._live.clear()
        running.gateway.live_models._fresh.discard(VIDEO)
        fal.always("catalogue", responds({"detail": "out of order"}, 503))
        assert (await running.wait_for_video(started.json["id"]))["status"] == "completed"
        await running.gateway.live_models.prepare_accepted(VIDEO)
        assert catalog.describe(VIDEO, schema=True)["schema"]["properties"]["seconds"]["maximum"] == 10


async def test_an_edit_by_an_unknown_id(open_gateway: OpenGateway) -> None:
    fal = FalWithCatalogue()
    fal.prices["fal-ai/flux-2/edit"] = (0.012, "megapixels")
    async with with_fal(open_gateway, fal) as running:
        record = await edit_image(running, model="fal/fal-ai/flux-2/edit", size="1024x1024")
        assert record["status"] == "completed"
        assert len(fal.received("submit")[0].fields["image_urls"]) == 1


LTX = "fal-ai/ltx-2-19b/image-to-video"


async def test_a_video_with_a_price_by_the_megapixel_is_held_for_all_its_frames(open_gateway: OpenGateway) -> None:
    """fal counts width x height x frames: 121 frames of 1280 x 720 are 112 megapixels."""
    fal = FalWithCatalogue()
    fal.prices[LTX] = (0.0018, "megapixels")
    fal.billed[LTX] = "112"
    async with with_fal(open_gateway, fal) as running:
        video: dict[str, Any] = {
            "model": f"fal/{LTX}",
            "size": "1280x720",
            "seconds": 4.84,
            "input_reference": {"image_url": IMAGE_URI},
        }
        record = await create_video(running, **video)
        assert fal.received("submit")[0].fields["num_frames"] == 121
        assert (record["status"], record["metadata"]["cost"]) == ("completed", Decimal("0.2016"))
        assert await running.rows("SELECT * FROM transfers WHERE kind = 'loss'") == []
        for more in ({"num_frames": 481}, {"fps": 60}):
            with pytest.raises(InvalidRequest, match="is not a parameter of this model"):
                await running.video(**{**video, **more})


async def test_an_upscaled_video_with_a_price_by_the_megapixel_is_held_for_the_frames_of_its_input(
    open_gateway: OpenGateway,
) -> None:
    fal = FalWithCatalogue()
    upscaler = "fal-ai/seedvr/upscale/video"
    fal.prices[upscaler] = (0.001, "megapixels")
    async with with_fal(open_gateway, fal) as running:
        await running.video(model=f"fal/{upscaler}", prompt=None, resolution="2160p", input_reference=INPUT_VIDEO)
        (row,) = await running.rows("SELECT hold FROM generations")
        assert row["hold"] == nanos("0.001") * 2 * ceil(8 * 2160 * 2160 / 1_000_000)


async def test_a_catalogue_is_searched_and_a_model_of_it_retrieved(open_gateway: OpenGateway) -> None:
    async with with_fal(open_gateway, fal := FalWithCatalogue()) as running:

        async def listed(caller: Caller | None = None, **asked: str) -> list[dict[str, Any]]:
            call = running.call(endpoint="/compat/v1/models", query=asked, caller=caller)
            response = await models.list_models(running.gateway, call)
            found: list[dict[str, Any]] = response.json["data"]
            return found

        found = await listed(provider="fal", search="flux")
        ids = [model["id"] for model in found]
        assert {"flux-dev", "fal/fal-ai/flux-2/edit", "fal/fal-ai/flux-1/krea"} <= set(ids)
        assert len(ids) == len(set(ids))
        assert [model["modality"] for model in found if model["id"] == "fal/fal-ai/flux-1/krea"] == ["image"]
        assert not any("hunyuan3d" in model["id"] for model in await listed(provider="fal"))
        assert "flux-dev" in [model["id"] for model in await listed(search="flux dev")]
        caller = running.caller
        few = Caller(caller.org_id, caller.key_id, caller.scopes, models=("fal/fal-ai/flux-1*",))
        assert [model["id"] for model in await listed(few, provider="fal", search="flux")] == ["fal/fal-ai/flux-1/krea"]
        with pytest.raises(InvalidRequest, match="does not know"):
            await listed(provider="nobody")

        call = running.call(endpoint="/compat/v1/models", query={"schema": "true"}, model=IMAGE)
        shown = (await models.retrieve_model(running.gateway, call)).json
        assert shown["pricing"] == [
            {
                "provider": "fal",
                "task": "image",
                "unit": "started_megapixel",
                "usd": "0.05",
                "source": "fal's own catalogue; what fal reports as billed is charged",
                "as_of": None,
                "second_hand": False,
            }
        ]
        assert shown["schema"]["properties"]["size"]["x-sent-as"] == "image_size.width, image_size.height"
        assert shown["schema"]["properties"]["num_inference_steps"]["default"] == 50
        fal.always("catalogue", responds({"detail": "out of order"}, 503))
        with pytest.raises(UpstreamError, match="could not be searched"):
            await listed(provider="fal", search="veo")
