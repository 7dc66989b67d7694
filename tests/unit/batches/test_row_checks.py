"""Checking and pricing a row: by the rules of its endpoint, without fetching or storing anything."""

import pytest

from penstock.batches.lines import EDITS, IMAGES, Line, RowFault
from penstock.batches.row_checks import check_row
from penstock.values import nanos
from tests.gateway import OpenGateway, sqlite_only
from tests.unit.batches.batch_calls import CHAT, IMAGE

pytestmark = sqlite_only


async def test_a_row_is_priced_as_its_call(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        price = await check_row(running.gateway, running.caller, Line(1, "a", IMAGES, {**IMAGE, "n": 2}))
        assert (price.estimate, price.most) == (nanos("0.08"), nanos("0.08"))
        chat = await check_row(running.gateway, running.caller, Line(1, "a", "/compat/v1/chat/completions", CHAT))
        assert 0 < chat.estimate < chat.most
        assert not await running.records()


async def test_inputs_are_not_fetched_before_their_row_runs(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        body = {"model": "edit-1", "prompt": "add a hat", "image": "https://pictures.example.com/a.png"}
        price = await check_row(running.gateway, running.caller, Line(1, "a", EDITS, body))
        assert price.estimate > 0


@pytest.mark.parametrize(
    ("changed", "column"),
    [
        ({"n": 11}, "n"),
        ({"size": "big"}, "size"),
        ({"model": "no-such"}, "model"),
        ({"stream": True}, "stream"),
        ({"idempotency_key": "k"}, "idempotency_key"),
        ({"labels": {"customer": "acme"}}, "labels.customer"),
    ],
)
async def test_a_fault_names_its_column(open_gateway: OpenGateway, changed: dict[str, object], column: str) -> None:
    async with open_gateway(works=False) as running:
        with pytest.raises(RowFault) as caught:
            await check_row(running.gateway, running.caller, Line(1, "a", IMAGES, {**IMAGE, **changed}))
        assert caught.value.column == column


async def test_a_key_may_only_use_its_models(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        caller = await running.create_caller(models=["lab/chat"])
        with pytest.raises(RowFault, match="may not use"):
            await check_row(running.gateway, caller, Line(1, "a", IMAGES, IMAGE))
