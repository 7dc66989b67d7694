"""What is kept of responses, and what of it another call finds: on both databases."""

import json

from penstock.accounts.response_items import (
    KeptItem,
    ResponseItem,
    add_items,
    delete_old_items,
    find_items,
    kept_items,
)
from penstock.settings import Settings
from penstock.values import OrgId
from tests.gateway import OpenGateway

HOUR_MS = 3_600_000
SETTINGS = Settings(response_item_retention="2h")


def test_items_that_nobody_could_refer_to_are_not_kept() -> None:
    org = OrgId("org_1")
    items = [ResponseItem("msg_1", b"{}"), ResponseItem("", b"{}"), ResponseItem("x" * 257, b"{}")]
    (kept,) = kept_items(SETTINGS, org, "req_1", items, 5)
    assert kept == KeptItem(org, "msg_1", "req_1", b"{}", 5 + 2 * HOUR_MS)
    long = ResponseItem("msg_2", json.dumps("x" * 256 * 1024).encode())
    assert kept_items(SETTINGS, org, "req_1", [long], 5) == ()
    assert kept_items(Settings(payloads="none"), org, "req_1", items, 5) == ()


async def test_a_provider_may_use_an_id_again_also_at_the_same_moment(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        org, store = running.caller.org_id, running.gateway.store
        other = (await running.create_caller_in_new_org()).org_id
        now = running.clock.now_ms()

        async def add(*items: KeptItem) -> None:
            await store.write(lambda tx: add_items(tx, items))

        await add(
            KeptItem(org, "msg_2", "req_1", b'"old"', now + 10),
            KeptItem(other, "msg_1", "req_2", b'"theirs"', now + 10),
            KeptItem(org, "msg_2", "req_1", b'"new"', now + 10),
        )
        await add()
        await add(KeptItem(org, "msg_1", "req_3", b'"ours"', now + 5))
        found = await find_items(store, org, ["msg_1", "msg_2", "msg_3"], now)
        assert found == {"msg_1": b'"ours"', "msg_2": b'"new"'}
        assert await find_items(store, org, ["msg_1"], now + 5) == {}
        assert await delete_old_items(store, now + 5) == 1
        assert await delete_old_items(store, now + 10) == 2
