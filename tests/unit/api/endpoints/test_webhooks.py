"""Webhook messages, test events and the secret over HTTP."""

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.api.endpoints import webhooks
from penstock.errors import InvalidRequest, NotFound, PermissionDenied
from penstock.values import iso
from penstock.webhooks.events import sign
from tests.api.running import running
from tests.gateway import OpenGateway, RunningGateway, caller_with
from tests.webhook_receivers import FIRST_DELAYS, Receiver

HOOK = "https://hooks.example.com/in"


async def test_the_webhook_secret_is_created_once_and_not_cached(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        response = await here.get("/v1/webhooks/secret")
        assert response.json["key"].startswith("whsec_")
        assert response.headers["cache-control"] == "no-store"
        assert (await here.get("/v1/webhooks/secret")).json == response.json
        assert (await here.get("/v1/webhooks/secret", here.theirs)).json != response.json


async def test_the_operator_may_leave_the_webhook_secret_to_admin_keys(open_gateway: OpenGateway) -> None:
    async with open_gateway(webhook_secret_readers="admin") as running:
        plain = caller_with(running.caller, scopes=frozenset())
        with pytest.raises(PermissionDenied, match="`admin`"):
            await webhooks.retrieve_webhook_secret(running.gateway, running.call(caller=plain))
        admin = caller_with(running.caller, scopes=frozenset({"admin"}))
        shown = await webhooks.retrieve_webhook_secret(running.gateway, running.call(caller=admin))
        assert shown.json["key"].startswith("whsec_")


# ------------------------------------------------------------------------------------------------------------- messages


async def finished_video(running: RunningGateway, status: int) -> str:
    """Make a video whose webhook message is delivered or exhausted, and return its id."""
    running.gateway.sender._client = Receiver(running.clock, status)
    video_id: str = (await running.video(webhook_url=HOOK)).json["id"]
    await running.wait_for_video(video_id)

    async def met() -> bool:
        row = await running.gateway.store.one("get_message", id=f"msg_{video_id}")
        return row is not None and row["state"] != "waiting"

    await running.wait_until(met)
    return video_id


async def test_messages_are_listed_shown_and_sent_again(open_gateway: OpenGateway) -> None:
    async with open_gateway(webhook_delays_seconds=FIRST_DELAYS) as running:
        delivered = await finished_video(running, 200)
        running.clock.advance(1)
        exhausted = await finished_video(running, 500)
        gateway = running.gateway

        async def listed(**query: str) -> list[str]:
            call = running.call(query=query, endpoint="/v1/webhooks/messages")
            return [message["request_id"] for message in (await webhooks.list_messages(gateway, call)).json["data"]]

        assert await listed() == [exhausted, delivered]
        assert await listed(status="exhausted") == await listed(request_id=exhausted) == [exhausted]
        assert await listed(event="video.failed") == []
        call = running.call(query={"limit": "1"}, endpoint="/v1/webhooks/messages")
        page = await webhooks.list_messages(gateway, call)
        assert page.json["next_page_url"] == f"/v1/webhooks/messages?limit=1&starting_after=msg_{exhausted}"
        assert await listed(starting_after=f"msg_{exhausted}") == [delivered]
        assert await listed(ending_before=f"msg_{delivered}") == [exhausted]

        shown = (await webhooks.retrieve_message(gateway, running.call(message_id=f"msg_{exhausted}"))).json
        assert (shown["status"], shown["body"]["type"]) == ("exhausted", "video.completed")
        assert [delivery["status_code"] for delivery in shown["deliveries"]] == [500, 500, 500, 500]

        other = await running.create_caller_in_new_org()
        for message_id in (f"msg_{exhausted}", "msg_x"):
            for endpoint in (webhooks.retrieve_message, webhooks.redeliver_message):
                with pytest.raises(NotFound):
                    await endpoint(gateway, running.call(message_id=message_id, caller=other))
        foreign = running.call(caller=other, endpoint="/v1/webhooks/messages")
        assert (await webhooks.list_messages(gateway, foreign)).json["data"] == []
        foreign = running.call(caller=other, query={"starting_after": f"msg_{exhausted}"})
        with pytest.raises(NotFound):
            await webhooks.list_messages(gateway, foreign)

        gateway.sender._client = receiver = Receiver(running.clock, 200)
        again = (await webhooks.redeliver_message(gateway, running.call(message_id=f"msg_{exhausted}"))).json
        assert again["status"] in ("waiting", "delivered")

        async def met() -> bool:
            return await listed(status="delivered") == [exhausted, delivered]

        await running.wait_until(met)
        assert receiver.sent[0].headers["webhook-id"] == f"msg_{exhausted}"

        await running.change("UPDATE messages SET state = 'exhausted'")
        for caller, count in ((other, 0), (running.caller, 2)):
            response = await webhooks.redeliver_exhausted_messages(gateway, running.call(caller=caller))
            assert response.json == {"object": "webhook.redelivery", "count": count}
        await running.wait_until(met)


async def test_a_test_event_is_signed_and_tried_once(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        gateway = running.gateway
        gateway.sender._client = receiver = Receiver(running.clock, 503)
        response = await webhooks.send_test_event(gateway, running.call({"url": HOOK}))
        assert (response.json["delivered"], response.json["status_code"]) == (False, 503)
        assert response.json["result"] == "status 503"
        [sent] = receiver.sent
        assert json.loads(sent.body)["type"] == "webhook.test"
        secret = await gateway.webhook_secrets.get_secret(running.caller.org_id)
        message_id = response.json["message_id"]
        signature = sign(secret, message_id, int(sent.headers["webhook-timestamp"]), sent.body)
        assert (sent.headers["webhook-id"], sent.headers["webhook-signature"]) == (message_id, signature)
        for url in ("http://hooks.example.com", "https://127.0.0.1/x", "https://localhost/", "x"):
            with pytest.raises(InvalidRequest):
                await webhooks.send_test_event(gateway, running.call({"url": url}))
        assert len(receiver.sent) == 1
        assert await running.rows("SELECT id FROM messages") == []


async def test_after_a_rotation_both_secrets_sign_while_the_overlap_lasts(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        gateway = running.gateway
        gateway.sender._client = receiver = Receiver(running.clock, 200)
        first = (await webhooks.retrieve_webhook_secret(gateway, running.call())).json
        assert first["previous_expires_at"] is None
        second = (await webhooks.rotate_webhook_secret(gateway, running.call({"overlap_hours": 2}))).json
        assert second["key"] != first["key"]
        assert second["previous_expires_at"] == iso(running.clock.now_ms() + 2 * 3_600_000)
        await webhooks.send_test_event(gateway, running.call({"url": HOOK}))
        assert len(receiver.sent[-1].headers["webhook-signature"].split(" ")) == 2
        running.clock.advance(2 * 3600)
        await webhooks.send_test_event(gateway, running.call({"url": HOOK}))
        assert len(receiver.sent[-1].headers["webhook-signature"].split(" ")) == 1
        assert (await webhooks.retrieve_webhook_secret(gateway, running.call())).json == {
            "key": second["key"],
            "previous_expires_at": None,
        }
        third = (await webhooks.rotate_webhook_secret(gateway, running.call({"overlap_hours": 0}))).json
        assert third["previous_expires_at"] is None
        bad: list[dict[str, Any]] = [{"overlap_hours": 169}, {"overlap_hours": "1"}, {"hours": 1}]
        for body in bad:
            with pytest.raises(InvalidRequest):
                await webhooks.rotate_webhook_secret(gateway, running.call(body))


async def test_sending_and_rotating_need_the_admin_scope(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        for path in ("secret/rotate", "test", "messages/msg_x/redeliver"):
            response = await here.served.call("POST", f"/v1/webhooks/{path}", key=here.mine.plain.key, body={})
            assert (response.status, response.code) == (403, "PERMISSION_DENIED"), path
