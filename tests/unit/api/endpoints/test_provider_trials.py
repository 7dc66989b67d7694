"""Calls that check a provider."""

from decimal import Decimal

import pytest

from penstock.api.endpoints.provider_trials import cheapest_trial
from penstock.errors import InvalidRequest, ModelNotFound
from tests.fake_providers.fal_catalogue import FalWithCatalogue
from tests.fake_providers.openrouter import OpenRouter
from tests.fake_providers.scripted import KEY_ENV
from tests.fake_providers.server import serving
from tests.gateway import OpenGateway, sqlite_only


@sqlite_only
async def test_the_cheapest_call_is_found_without_sending_anything(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        trial = await cheapest_trial(running.gateway, running.caller, "lab", None)
        assert (trial.task, trial.model) == ("chat", "lab/lab/chat")
        image = await cheapest_trial(running.gateway, running.caller, "lab", "image-1")
        assert (image.task, image.usd) == ("image", Decimal("0.04"))
        with pytest.raises(InvalidRequest, match="no model that matches x"):
            await cheapest_trial(running.gateway, running.caller, "lab", "x")
        assert (running.lab.submits, await running.records()) == (0, [])


@sqlite_only
async def test_a_model_of_the_providers_own_catalogue_can_be_checked(open_gateway: OpenGateway) -> None:
    fal = FalWithCatalogue()
    fal.prices["fal-ai/ltx-2.3/text-to-video"] = (0.04, "seconds")
    async with serving(fal):
        table = {"base_url": fal.url, "catalogue_url": f"{fal.url}/v1", "key_env": KEY_ENV}
        async with open_gateway(providers={"fal": table}) as running:
            trial = await cheapest_trial(running.gateway, running.caller, "fal", "fal/fal-ai/ltx-2.3/text-to-video")
            assert (trial.task, trial.model) == ("video", "fal/fal-ai/ltx-2.3/text-to-video")
            assert trial.usd > 0
            with pytest.raises(ModelNotFound, match="fal has no such endpoint"):
                await cheapest_trial(running.gateway, running.caller, "fal", "fal-ai/nothing")
    assert fal.received("submit") == []


@sqlite_only
async def test_a_catalogue_says_whether_a_model_is_for_images_or_for_chat(open_gateway: OpenGateway) -> None:
    async with serving(router := OpenRouter()):
        url = f"{router.url}/api/v1"
        table = {"base_url": url, "catalogue_url": url, "key_env": KEY_ENV}
        async with open_gateway(providers={"openrouter": table}) as running:
            image = await cheapest_trial(running.gateway, running.caller, "openrouter", "acme/painter-2")
            chat = await cheapest_trial(running.gateway, running.caller, "openrouter", "acme/thinker")
            assert (image.task, chat.task) == ("image", "chat")
