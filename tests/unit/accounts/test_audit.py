"""The audit finds each kind of breach, and none in a healthy database."""

import re

import apsw
import pytest

from penstock.accounts import audit
from tests.api.http_calls import served_api
from tests.fake_providers import faults
from tests.gateway import OpenGateway, RunningGateway, sqlite_only

HOOK = "https://receiver.example/hook"

# Changes that break a rule, and how the audit's message begins.
DAMAGE = {
    "UPDATE orgs SET available = available + 1": "balances: ",
    "UPDATE orgs SET held = held + 5": "balances: ",
    "DELETE FROM transfers WHERE kind = 'credit'": "balances: ",
    "DELETE FROM transfers WHERE kind IN ('capture', 'release')": "open_holds: ",
    "DELETE FROM transfers WHERE kind = 'hold'": "balances: ",
    "UPDATE requests SET status = 'processing' WHERE status = 'completed'": "early_ends: ",
    "INSERT INTO transfers SELECT 'req_x', step, kind, org_id, source, target, 0, 0, 1, NULL FROM transfers"
    " WHERE kind = 'capture' LIMIT 1": "unrecorded: ",
    "UPDATE requests SET cost = cost + 1 WHERE status = 'completed'": "costs: ",
    "UPDATE transfers SET returned = returned + 1 WHERE step = 'end'": "refunds: ",
    "UPDATE generations SET status = 'failed' WHERE status = 'completed'": "states: ",
    "UPDATE requests SET status = 'cancelled' WHERE status = 'completed'": "states: ",
    "DELETE FROM messages": "messages: ",
    "UPDATE generations SET status = 'queued' WHERE status = 'completed'": "early_messages: ",
    "UPDATE generations SET status = 'queued', deadline_ms = 0 WHERE status = 'completed'": "overdue: ",
    "UPDATE requests SET purged_at_ms = 1 WHERE status = 'completed'": "purged: ",
    "UPDATE attempts SET state = 'completed', cost = 7 WHERE state = 'failed'": "losses: ",
    "INSERT INTO attempts (id, request_id, org_id, round, part, candidate, count, provider, upstream_model, state,"
    " created_at_ms, updated_at_ms)"
    " SELECT 'att_x', request_id, org_id, round, part, candidate + 1, count, provider, upstream_model, 'failed', 1, 1"
    " FROM attempts WHERE state = 'failed';"
    "UPDATE attempts SET state = 'unknown' WHERE state = 'failed' AND id <> 'att_x'": "attempts: ",
    "DELETE FROM usage_slots": "usage: ",
    "UPDATE usage_slots SET cost = cost + 1": "usage: ",
    "DELETE FROM media": "",
    "UPDATE media SET size_bytes = size_bytes + 1": "media: ",
    "INSERT INTO media (id, org_id, request_id, role, position, content_type, size_bytes, sha256, created_at_ms,"
    " expires_at_ms) SELECT 'med_x', org_id, request_id, role, 9, content_type, 1, sha256, 1, 9e12"
    " FROM media LIMIT 1": "media: ",
}


async def make_requests(running: RunningGateway) -> None:
    """Make a video that completes, one that fails, and an image."""
    running.lab.videos.next(faults.ok, faults.fails)
    for _ in range(2):
        await running.wait_for_video((await running.video(webhook_url=HOOK)).json["id"])
    await running.image()


async def test_a_healthy_database_has_no_breaches(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        assert await running.run_audit() == []
        await make_requests(running)
        running.lab.videos.next(faults.never_ends)
        await running.video(webhook_url=HOOK)
        assert await running.run_audit() == []


@pytest.mark.parametrize(("statement", "message"), DAMAGE.items())
@sqlite_only
async def test_damage_is_found(open_gateway: OpenGateway, statement: str, message: str) -> None:
    async with open_gateway(audited=False) as running:
        await make_requests(running)
        path = running.gateway.settings.data / "penstock.db"
    tampered = apsw.Connection(str(path))
    tampered.execute(statement)
    tampered.close()
    async with open_gateway(labs=(running.lab, running.annex), works=False, audited=False) as running:
        breaches = await running.run_audit()
        assert any(breach.startswith(message) for breach in breaches) or not message, breaches
        assert all(re.match(r"[a-z_]+: ", breach) for breach in breaches)


@sqlite_only
async def test_the_audit_compares_answered_chats_with_records(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway, audited=False) as api:
        settlement = api.running.gateway.chat_settlement
        await api.chat()
        await settlement.catch_up(api.running.caller.org_id)
        assert await api.running.run_audit() == []
        await api.running.change("CREATE TRIGGER full BEFORE INSERT ON requests BEGIN SELECT RAISE(ABORT, 'full'); END")
        answered = await api.chat()
        assert answered.status == 200
        await settlement.catch_up(api.running.caller.org_id)
        request_id = answered.headers["x-request-id"]
        assert await api.running.run_audit() == [f"unrecorded: {request_id}: has a loss but no record"]
        assert await api.running.transfers(request_id) == {"loss": (await api.running.records())[0]["cost"]}


@sqlite_only
async def test_missing_and_truncated_files_are_found(open_gateway: OpenGateway) -> None:
    async with open_gateway(audited=False) as running:
        await running.image()
        await running.image()
        first, second = sorted(path for path in (running.gateway.settings.data / "media").rglob("med_*"))
        first.unlink()
        second.write_bytes(b"half")
        breaches = await running.run_audit()
        assert len(breaches) == 2
        assert {breach.split(" ", 3)[2] for breach in breaches} == {"is", "has"}


@sqlite_only
async def test_an_expired_file_may_be_missing(open_gateway: OpenGateway) -> None:
    """The file is deleted before its row, so an audit may run between the two."""
    async with open_gateway(audited=False) as running:
        await running.image()
        (file,) = (running.gateway.settings.data / "media").rglob("med_*")
        file.unlink()
        assert len(await running.run_audit()) == 1
        running.clock.advance(25 * 3600)
        assert await running.run_audit() == []


@sqlite_only
async def test_at_most_twenty_breaches_of_a_rule_are_shown(open_gateway: OpenGateway) -> None:
    async with open_gateway(audited=False) as running:
        for _ in range(30):
            await running.image()
        path = running.gateway.settings.data / "penstock.db"
    tampered = apsw.Connection(str(path))
    tampered.execute("UPDATE requests SET cost = cost + 1")
    tampered.close()
    async with open_gateway(labs=(running.lab, running.annex), works=False, audited=False) as running:
        assert sum(breach.startswith("costs: ") for breach in await running.run_audit()) == 20


async def test_an_attempt_with_an_unknown_outcome_is_an_orphan(open_gateway: OpenGateway) -> None:
    """A delivered or a failed attempt is not."""
    async with open_gateway() as running:
        await make_requests(running)
        assert await audit.count_orphans(running.gateway.store) == (0, 0)
        running.lab.videos.next(faults.dropped)
        await running.wait_for_video((await running.video()).json["id"])
        assert await audit.count_orphans(running.gateway.store) == (1, 0)


def test_every_rule_has_a_message() -> None:
    assert all(audit.RULES.values())
