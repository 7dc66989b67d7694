"""Calls that check a provider."""

from decimal import Decimal

import pytest

from penstock.api.trials import cheapest_trial
from penstock.errors import InvalidRequest
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
