"""Webhook messages as the API shows them."""

from typing import Any

from penstock.webhooks.records import list_messages, message_records
from tests.databases import Database
from tests.webhook_receivers import Process, add_messages, open_process


async def record(process: Process, message_id: str) -> dict[str, Any]:
    [message] = [each for each in await list_messages(process.store) if each.id == message_id]
    [found] = await message_records(process.store, [message])
    return found


async def test_a_message_shows_each_delivery_and_its_status(database: Database) -> None:
    async with open_process(database, 503) as process:
        [message_id] = await add_messages(process.store)
        waiting = await record(process, message_id)
        assert (waiting["status"], waiting["deliveries"], waiting["ended_at"]) == ("waiting", [], None)
        assert waiting["next_at"] == waiting["created_at"] == "1970-01-01T00:00:00.007Z"
        await process.deliveries.deliver_due_messages()
        process.clock.advance(60)
        process.receiver.respond = 204
        await process.deliveries.deliver_due_messages()
        ended = await record(process, message_id)
        assert (ended["status"], ended["next_at"]) == ("delivered", None)
        shown = [(each["number"], each["status_code"], each["result"]) for each in ended["deliveries"]]
        assert shown == [(1, 503, "status 503"), (2, 204, "status 204")]

        await process.deliveries.redeliver(message_id)
        await process.deliveries.deliver_due_messages()
        assert [each["number"] for each in (await record(process, message_id))["deliveries"]] == [1, 2, 3]
