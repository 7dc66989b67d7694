"""Events and their signatures are what the specification says."""

import asyncio
import json
from typing import Any

import openai
import pytest
import standardwebhooks

from penstock.errors import NotFound
from penstock.store.base import Transaction
from penstock.vault import Vault
from penstock.webhooks.events import WebhookSecrets, event, queue, sign
from tests.databases import BOTH, Database, database_for
from tests.webhook_receivers import ORG, URL, VAULT, put, started


@pytest.fixture(params=BOTH)
def database(request: pytest.FixtureRequest) -> Database:
    return database_for(request, request.param)


@pytest.fixture
def sqlite(request: pytest.FixtureRequest) -> Database:
    return database_for(request, "sqlite")


# -------------------------------------------------------------------------------------------------------------- signing


def test_the_signature_of_the_specification() -> None:
    signature = sign(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
    )
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_QQ==", "whsec_" + "A" * 28, "whsec_????"])
def test_a_worthless_secret_signs_nothing(secret: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (of the decoder or ours)
        sign(secret, "msg_1", 1, b"")


async def test_receivers_verify_with_the_published_libraries(database: Database) -> None:
    async with started(database) as one:
        (message_id,) = await put(one.store)
        await one.deliveries.deliver_due()
        (sent,) = one.receiver.sent
        secret = await WebhookSecrets(one.store, VAULT, one.clock).secret(ORG)
        assert sent.headers["webhook-id"] == message_id
        assert sent.headers["webhook-timestamp"] == str(one.clock.now_ms() // 1000)
        assert sent.headers["content-type"] == "application/json"
        standardwebhooks.Webhook(secret).verify(sent.body, dict(sent.headers))
        openai.OpenAI(api_key="x").webhooks.verify_signature(sent.body, sent.headers, secret=secret)
        with pytest.raises(standardwebhooks.WebhookVerificationError):
            standardwebhooks.Webhook(secret).verify(sent.body + b" ", dict(sent.headers))


# -------------------------------------------------------------------------------------------------------------- secrets


async def test_a_secret_is_made_once(database: Database) -> None:
    async with started(database) as one, started(database) as two:
        ways = [WebhookSecrets(each.store, VAULT, each.clock) for each in (one, two)]
        found = await asyncio.gather(*[ways[number % 2].secret(ORG) for number in range(50)])
        assert len(set(found)) == 1
        assert found[0].startswith("whsec_")
        row = await one.store.one("get_secrets", org_id=ORG)
        assert row is not None
        assert found[0].encode() not in row["secret"]
        with pytest.raises(NotFound):
            await ways[0].secret("org_none")


async def test_after_a_rotation_both_secrets_verify_for_a_day(database: Database) -> None:
    async with started(database) as one:
        known = WebhookSecrets(one.store, VAULT, one.clock)
        old = await known.secret(ORG)
        new = await known.rotate(ORG)
        assert new != old
        assert await known.secret(ORG) == new
        await put(one.store)
        await one.deliveries.deliver_due()
        (sent,) = one.receiver.sent
        assert len(sent.headers["webhook-signature"].split(" ")) == 2
        for secret in (old, new):
            standardwebhooks.Webhook(secret).verify(sent.body, dict(sent.headers))
        one.clock.advance(24 * 3600)
        assert await known.signing(ORG) == (new,)


async def test_secrets_are_sealed_anew_after_the_master_secret_changed(database: Database) -> None:
    async with started(database) as one:
        old = WebhookSecrets(one.store, VAULT, one.clock)
        await old.secret(ORG)
        await old.rotate(ORG)
        before = await old.signing(ORG)
        both = WebhookSecrets(one.store, Vault("w" * 43, "v" * 43), one.clock)
        assert [await both.reseal(), await both.reseal()] == [1, 0]
        assert await WebhookSecrets(one.store, Vault("w" * 43), one.clock).signing(ORG) == before


# --------------------------------------------------------------------------------------------------------------- events


def test_the_body_of_a_completed_video() -> None:
    file = {"url": "https://x/1", "content_type": "video/mp4", "size_bytes": 5}
    body = event("video.completed", "req_1", "m", outputs=[file])
    assert json.loads(body) == {
        "type": "video.completed",
        "data": {"object": "video.generation", "id": "req_1", "model": "m", "status": "completed", "output": file},
    }
    assert body == event("video.completed", "req_1", "m", outputs=[dict(file)])
    several = json.loads(event("image.completed", "req_1", "m", outputs=[file, {"url": "https://x/2"}]))
    assert several["data"]["object"] == "image.generation"
    assert several["data"]["output"] == file
    assert [one["url"] for one in several["data"]["outputs"]] == ["https://x/1", "https://x/2"]


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_the_body_of_a_video_that_did_not_complete(status: str) -> None:
    error = {"code": "CANCELLED", "message": "Überraschung", "secret": "not for them"}
    data = json.loads(event(f"video.{status}", "req_1", "m", error=error))["data"]
    assert data["status"] == status
    assert data["error"] == {"code": "CANCELLED", "message": "Überraschung"}
    assert "output" not in data


async def test_a_request_has_one_event(database: Database) -> None:
    async with started(database) as one:
        (message_id,) = await put(one.store)
        request_id = message_id.removeprefix("msg_")
        other: dict[str, Any] = {"kind": "video.completed", "body": b"{}", "url": URL, "at_ms": 8}
        await one.store.write(lambda tx: queue(tx, org_id=ORG, request_id=request_id, **other))
        await one.deliveries.deliver_due()
        assert [json.loads(sent.body)["type"] for sent in one.receiver.sent] == ["video.failed"]


async def test_no_message_without_its_news(database: Database) -> None:
    async with started(database) as one:

        async def work(tx: Transaction) -> None:
            await tx.run("put_request", id="req_1", org_id=ORG)
            await queue(tx, org_id=ORG, request_id="req_1", url=URL, kind="video.failed", body=b"{}", at_ms=1)
            raise RuntimeError("settling failed")

        with pytest.raises(RuntimeError):
            await one.store.write(work)
        assert await one.deliveries.list_messages() == []
