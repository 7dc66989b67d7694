"""Webhook events and signatures follow the specification."""

import asyncio
import json
from typing import Any

import openai
import pytest
import standardwebhooks

from penstock.errors import NotFound
from penstock.store.base import Transaction
from penstock.values import OrgId
from penstock.vault import Vault
from penstock.webhooks.events import WebhookSecrets, event_body, message_row, sign
from penstock.webhooks.records import list_messages
from tests.databases import Database
from tests.webhook_receivers import ORG, URL, VAULT, add_messages, open_process

# -------------------------------------------------------------------------------------------------------------- signing


def test_the_signature_of_the_specification() -> None:
    signature = sign(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
    )
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_QQ==", "whsec_" + "A" * 28, "whsec_????"])
def test_a_short_or_malformed_secret_is_refused(secret: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (from the decoder or from `sign`)
        sign(secret, "msg_1", 1, b"")


async def test_receivers_verify_with_the_published_libraries(database: Database) -> None:
    async with open_process(database) as process:
        (message_id,) = await add_messages(process.store)
        await process.deliveries.deliver_due_messages()
        (sent,) = process.receiver.sent
        secret = await WebhookSecrets(process.store, VAULT, process.clock).get_secret(ORG)
        assert sent.headers["webhook-id"] == message_id
        assert sent.headers["webhook-timestamp"] == str(process.clock.now_ms() // 1000)
        assert sent.headers["content-type"] == "application/json"
        standardwebhooks.Webhook(secret).verify(sent.body, dict(sent.headers))
        openai.OpenAI(api_key="x").webhooks.verify_signature(sent.body, sent.headers, secret=secret)
        with pytest.raises(standardwebhooks.WebhookVerificationError):
            standardwebhooks.Webhook(secret).verify(sent.body + b" ", dict(sent.headers))


# -------------------------------------------------------------------------------------------------------------- secrets


async def test_a_secret_is_created_once(database: Database) -> None:
    async with open_process(database) as process, open_process(database) as other:
        secrets_of = [WebhookSecrets(each.store, VAULT, each.clock) for each in (process, other)]
        found = await asyncio.gather(*[secrets_of[number % 2].get_secret(ORG) for number in range(50)])
        assert len(set(found)) == 1
        assert found[0].startswith("whsec_")
        row = await process.store.one("get_secrets", org_id=ORG)
        assert row is not None
        assert found[0].encode() not in row["secret"]
        with pytest.raises(NotFound):
            await secrets_of[0].get_secret(OrgId("org_none"))


async def test_after_a_rotation_both_secrets_verify_for_a_day(database: Database) -> None:
    async with open_process(database) as process:
        secrets = WebhookSecrets(process.store, VAULT, process.clock)
        old = await secrets.get_secret(ORG)
        new = await secrets.rotate(ORG)
        assert new != old
        assert await secrets.get_secret(ORG) == new
        await add_messages(process.store)
        await process.deliveries.deliver_due_messages()
        (sent,) = process.receiver.sent
        assert len(sent.headers["webhook-signature"].split(" ")) == 2
        for secret in (old, new):
            standardwebhooks.Webhook(secret).verify(sent.body, dict(sent.headers))
        process.clock.advance(24 * 3600)
        assert await secrets.get_signing_secrets(ORG) == (new,)


async def test_secrets_are_resealed_after_the_master_secret_changed(database: Database) -> None:
    async with open_process(database) as process:
        old = WebhookSecrets(process.store, VAULT, process.clock)
        await old.get_secret(ORG)
        await old.rotate(ORG)
        before = await old.get_signing_secrets(ORG)
        both = WebhookSecrets(process.store, Vault("w" * 43, "v" * 43), process.clock)
        assert [await both.reseal(), await both.reseal()] == [1, 0]
        assert await WebhookSecrets(process.store, Vault("w" * 43), process.clock).get_signing_secrets(ORG) == before


# --------------------------------------------------------------------------------------------------------------- events


def test_the_body_of_a_completed_video() -> None:
    file = {"url": "https://x/1", "content_type": "video/mp4", "size_bytes": 5}
    body = event_body("video.completed", "req_1", "m", outputs=[file])
    assert json.loads(body) == {
        "type": "video.completed",
        "data": {"object": "video.generation", "id": "req_1", "model": "m", "status": "completed", "output": file},
    }
    assert body == event_body("video.completed", "req_1", "m", outputs=[dict(file)])
    several = json.loads(event_body("image.completed", "req_1", "m", outputs=[file, {"url": "https://x/2"}]))
    assert several["data"]["object"] == "image.generation"
    assert several["data"]["output"] == file
    assert [output["url"] for output in several["data"]["outputs"]] == ["https://x/1", "https://x/2"]


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_the_body_of_a_video_that_did_not_complete(status: str) -> None:
    error = {"code": "CANCELLED", "message": "Überraschung", "secret": "not for them"}
    data = json.loads(event_body(f"video.{status}", "req_1", "m", error=error))["data"]
    assert data["status"] == status
    assert data["error"] == {"code": "CANCELLED", "message": "Überraschung"}
    assert "output" not in data


async def test_a_request_has_one_message(database: Database) -> None:
    async with open_process(database) as process:
        (message_id,) = await add_messages(process.store)
        request_id = message_id.removeprefix("msg_")
        other: dict[str, Any] = {"event": "video.completed", "body": b"{}", "url": URL, "at_ms": 8}
        await process.store.write(
            lambda tx: tx.put("add_message", **message_row(org_id=ORG, request_id=request_id, **other))
        )
        await process.deliveries.deliver_due_messages()
        assert [json.loads(sent.body)["type"] for sent in process.receiver.sent] == ["video.failed"]


async def test_a_failed_transaction_adds_no_message(database: Database) -> None:
    async with open_process(database) as process:

        async def work(tx: Transaction) -> None:
            await tx.run("put_request", id="req_1", org_id=ORG)
            await tx.put(
                "add_message",
                **message_row(org_id=ORG, request_id="req_1", url=URL, event="video.failed", body=b"{}", at_ms=1),
            )
            raise RuntimeError("settlement failed")

        with pytest.raises(RuntimeError):
            await process.store.write(work)
        assert await list_messages(process.store) == []
