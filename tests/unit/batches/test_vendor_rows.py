"""Rows that wait at a provider in the store: held for together, or not at all."""

import pytest

from penstock.batches import vendor_rows
from penstock.batches.records import PendingRow
from penstock.batches.row_checks import row_call
from penstock.batches.vendor_rows import BatchedRow, RowTaken
from penstock.chat.batched import batched_chat, give_up_batched
from penstock.errors import InsufficientBalance
from tests.fake_providers.openai_batches import OpenAIBatches
from tests.gateway import OpenGateway, RunningGateway
from tests.unit.batches.batch_calls import batch, create
from tests.unit.batches.vendor_calls import chat_body, chat_rows, opened

CHATS = "/compat/v1/chat/completions"


async def pending(running: RunningGateway, batch_id: str) -> list[BatchedRow]:
    """The rows of a batch, each with a new request."""
    page = {"batch_id": batch_id, "after": 0, "limit": 100}
    rows = [PendingRow(**row) for row in await running.gateway.store.all("list_pending_batch_rows", **page)]
    found = []
    for row in rows:
        chat = await batched_chat(
            running.gateway, row_call(running.gateway, running.caller, CHATS, chat_body(f"plum {row.number}"))
        )
        assert chat is not None
        found.append(BatchedRow(row, chat))
    return found


async def test_a_row_is_taken_once(open_gateway: OpenGateway) -> None:
    async with opened(open_gateway, OpenAIBatches()) as running:
        made = await create(running, requests=chat_rows(3), start=False)
        record = await batch(running, made["id"])
        first = await pending(running, made["id"])
        second = await pending(running, made["id"])
        held = await vendor_rows.hold_rows(running.gateway, record, first[:2])
        before = await running.money()
        with pytest.raises(RowTaken):
            await vendor_rows.hold_rows(running.gateway, record, second)
        assert (await running.money(), held.rows_total) == (before, 2)
        (found,) = await vendor_rows.open_batches(running.gateway.store, made["id"])
        rows = await vendor_rows.open_rows(running.gateway.store, found)
        assert [(row.number, row.request_id) for row in rows] == [(row.number, chat.call.id) for row, chat in first[:2]]
        assert [row.row.number for row in await pending(running, made["id"])] == [3]


async def test_too_low_a_balance_holds_for_none(open_gateway: OpenGateway) -> None:
    async with opened(open_gateway, OpenAIBatches()) as running:
        running.caller = await running.create_caller_in_new_org("0.00002")
        made = await create(running, requests=chat_rows(3), start=False)
        with pytest.raises(InsufficientBalance):
            await vendor_rows.hold_rows(
                running.gateway, await batch(running, made["id"]), await pending(running, made["id"])
            )
        assert (await running.money(), await running.records()) == ((20_000, 0), [])
        assert not await vendor_rows.open_batches(running.gateway.store, made["id"])


async def test_a_record_that_has_ended_gives_up_its_lease(open_gateway: OpenGateway) -> None:
    async with opened(open_gateway, OpenAIBatches()) as running:
        made = await create(running, requests=chat_rows(1), start=False)
        rows = await pending(running, made["id"])
        record = await vendor_rows.hold_rows(running.gateway, await batch(running, made["id"]), rows)
        leases = "SELECT id FROM processes WHERE id LIKE 'vbt%'"
        assert len(await running.rows(leases)) == 1
        candidate = vendor_rows.find_candidate(running.gateway, record)
        assert candidate is not None
        assert candidate.model.upstream == "gpt-4o-mini"
        await vendor_rows.end_record(running.gateway, record)
        assert await running.rows(leases) == []
        assert await vendor_rows.read_record(running.gateway.store, record.id) is None
        call = rows[0].chat.call
        found = await running.gateway.requests.get(record.org_id, call.id)
        assert found is not None
        give_up_batched(running.gateway, call, found, "cancelled", InsufficientBalance("Enough."))
        await running.wait_for_request(call.id)
