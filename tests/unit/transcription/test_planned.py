"""Candidates of calls of transcription, and what they may cost; most of it is seen in test_endpoint.py."""

import json

import pytest

from penstock.errors import InvalidRequest
from tests.fake_providers import faults
from tests.gateway import OpenGateway, sqlite_only
from tests.unit.chat.chat_calls import last_record
from tests.unit.transcription.listen_calls import decoded, listen


@sqlite_only
async def test_the_next_provider_is_asked_where_the_first_fails(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        running.lab.transcripts.always(faults.error(500, "Oops."))
        running.annex.transcripts.always(faults.error(500, "Oops."))
        running.lab.transcripts.next(faults.ok)
        assert decoded(await listen(running, model="lab/listen"))["text"]
        assert (await last_record(running))["status"] == "completed"


@sqlite_only
async def test_preferences_are_those_of_other_calls(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        limit = ("provider", json.dumps({"max_price": {"request": 0.00001}}))
        with pytest.raises(InvalidRequest):
            await listen(running, limit)
        assert decoded(await listen(running, ("provider", json.dumps({"max_price": {"request": 1}}))))
        with pytest.raises(InvalidRequest) as refusal:
            await listen(running, ("provider", json.dumps({"max_price": {"minute": 1}})))
        assert refusal.value.param == "provider.max_price.minute"
