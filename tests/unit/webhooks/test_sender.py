"""What becomes of a message that is sent: a status, or why there is none, and whether the receiver is to blame."""

import asyncio

import pytest

from penstock.errors import InvalidRequest, RateLimited
from penstock.net.errors import LookupBusy, MaybeSent, NotSent
from penstock.values import OrgId
from penstock.webhooks.delivery import DeliveryResult, LeasedMessage
from tests.api.raw_http import until
from tests.databases import Database
from tests.webhook_receivers import ORG, URL, SentMessage, add_org, open_process


def leased(url: str = URL) -> LeasedMessage:
    return LeasedMessage("msg_1", ORG, url, b"{}", 0, 1)


async def test_every_end_of_a_delivery_has_its_result(sqlite: Database) -> None:
    ends: dict[int | Exception, DeliveryResult] = {
        200: DeliveryResult("status 200", 200, delivered=True),
        299: DeliveryResult("status 299", 299, delivered=True),
        302: DeliveryResult("status 302", 302),
        410: DeliveryResult("status 410: the receiver wants no more of them", 410, may_retry=False),
        500: DeliveryResult("status 500", 500),
        TimeoutError(): DeliveryResult("timed out"),
        MaybeSent("cut off"): DeliveryResult("cut off"),
        NotSent("refused"): DeliveryResult("refused"),
        NotSent("no more files", local=True): DeliveryResult("no more files", counts=False),
        LookupBusy(): DeliveryResult(str(LookupBusy()), counts=False, short_of_places=False),
    }
    found = {}
    async with open_process(sqlite) as process:
        for end in ends:

            async def respond(_: SentMessage, end: int | Exception = end) -> int:
                if isinstance(end, Exception):
                    raise end
                return end

            process.receiver.respond = respond
            found[end] = await process.deliveries._sender.send(leased())
        assert found == ends
        refused = await process.deliveries._sender.send(leased("http://hooks.test/in"))
        assert refused == DeliveryResult("the URL is refused")
        assert len(process.receiver.sent) == len(ends)


async def test_an_organization_has_few_trials_at_a_time(sqlite: Database) -> None:
    """Each may wait for its receiver for half a minute, and costs nothing."""
    async with open_process(sqlite) as process:
        other = OrgId("org_" + "1" * 32)
        await process.store.write(lambda tx: add_org(tx, other))
        may_respond = asyncio.Event()

        async def respond(_: SentMessage) -> int:
            await may_respond.wait()
            return 200

        process.receiver.respond = respond
        sender = process.deliveries._sender
        waiting = [asyncio.create_task(sender.send_trial(ORG, URL)) for _ in range(4)]
        await until(lambda: len(process.receiver.sent) == 4)
        with pytest.raises(RateLimited, match="At most 4 test events"):
            await sender.send_trial(ORG, URL)
        waiting.append(asyncio.create_task(sender.send_trial(other, URL)))
        await until(lambda: len(process.receiver.sent) == 5)
        may_respond.set()
        assert [trial.result.status for trial in await asyncio.gather(*waiting)] == [200] * 5
        assert (await sender.send_trial(ORG, URL)).result.delivered


async def test_a_trial_is_sent_once_and_stored_nowhere(sqlite: Database) -> None:
    async with open_process(sqlite, 503) as process:
        trial = await process.deliveries._sender.send_trial(ORG, URL)
        assert (trial.result.status, trial.message.url) == (503, URL)
        with pytest.raises(InvalidRequest):
            await process.deliveries._sender.send_trial(ORG, "http://hooks.test/in")
        assert [sent.body for sent in process.receiver.sent] == [trial.message.body]
        await process.deliveries.deliver_due_messages()
        assert len(process.receiver.sent) == 1
