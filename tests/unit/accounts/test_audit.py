"""The audit finds each kind of breach, and nothing where all is well."""

import re

import apsw
import pytest

from penstock.accounts import audit
from tests.fake_providers import faults
from tests.gateway import OpenGateway, RunningGateway, sqlite_only

HOOK = "https://receiver.example/hook"

# What somebody, or some fault of ours, did to the database; and what the audit says of it.
DEEDS = {
    "UPDATE orgs SET available = available + 1": "balances: ",
    "UPDATE orgs SET held = held + 5": "balances: ",
    "DELETE FROM transfers WHERE kind = 'credit'": "balances: ",
    "DELETE FROM transfers WHERE kind IN ('capture', 'release')": "open_holds: ",
    "DELETE FROM transfers WHERE kind = 'hold'": "balances: ",
    "UPDATE requests SET status = 'processing' WHERE status = 'completed'": "early_ends: ",
    "UPDATE requests SET cost = cost + 1 WHERE status = 'completed'": "costs: ",
    "UPDATE transfers SET returned = returned + 1 WHERE step = 'end'": "refunds: ",
    "UPDATE generations SET status = 'failed' WHERE status = 'completed'": "states: ",
    "UPDATE requests SET status = 'cancelled' WHERE status = 'completed'": "states: ",
    "DELETE FROM messages": "messages: ",
    "UPDATE generations SET status = 'queued' WHERE status = 'completed'": "early_messages: ",
    "UPDATE generations SET status = 'queued', deadline_ms = 0 WHERE status = 'completed'": "overdue: ",
    "UPDATE requests SET purged_at_ms = 1 WHERE status = 'completed'": "purged: ",
    "UPDATE attempts SET state = 'completed', cost = 7 WHERE state = 'failed'": "losses: ",
    "INSERT INTO attempts (id, request_id, org_id, part, candidate, count, provider, state, created_at_ms,"
    " updated_at_ms) SELECT 'att_x', request_id, org_id, part, candidate + 1, count, provider, 'failed', 1, 1"
    " FROM attempts WHERE state = 'failed';"
    "UPDATE attempts SET state = 'unknown' WHERE state = 'failed' AND id <> 'att_x'": "attempts: ",
    "DELETE FROM usage_slots": "usage: ",
    "UPDATE usage_slots SET cost = cost + 1": "usage: ",
    "DELETE FROM media": "",
    "UPDATE media SET size_bytes = size_bytes + 1": "media: ",
    "INSERT INTO media SELECT 'med_x', org_id, request_id, role, 9, content_type, 1, sha256, 1, 1, NULL, 1, 9e12"
    " FROM media LIMIT 1": "media: ",
}


async def lived(running: RunningGateway) -> None:
    """A film that was made, one that failed, a picture, and a refusal."""
    running.lab.videos.next(faults.ok, faults.fails)
    for _ in range(2):
        await running.finished((await running.video(webhook_url=HOOK)).json["id"])
    await running.image()


async def test_all_is_well(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        assert await running.breaches() == []
        await lived(running)
        running.lab.videos.next(faults.never_ends)
        await running.video(webhook_url=HOOK)
        assert await running.breaches() == []


@pytest.mark.parametrize(("deed", "words"), DEEDS.items())
@sqlite_only
async def test_breaches(open_gateway: OpenGateway, deed: str, words: str) -> None:
    async with open_gateway(audited=False) as running:
        await lived(running)
        path = running.gateway.settings.data / "penstock.db"
    tampered = apsw.Connection(str(path))
    tampered.execute(deed)
    tampered.close()
    async with open_gateway(labs=(running.lab, running.annex), works=False, audited=False) as running:
        breaches = await running.breaches()
        assert any(breach.startswith(words) for breach in breaches) or not words, breaches
        assert all(re.match(r"[a-z_]+: ", breach) for breach in breaches)


@sqlite_only
async def test_files_that_are_missing_or_short(open_gateway: OpenGateway) -> None:
    async with open_gateway(audited=False) as running:
        await running.image()
        await running.image()
        first, second = sorted(path for path in (running.gateway.settings.data / "media").rglob("med_*"))
        first.unlink()
        second.write_bytes(b"half")
        told = sorted(await running.breaches())
        assert len(told) == 2
        assert {told[0].split(" ", 3)[2], told[1].split(" ", 3)[2]} == {"is", "has"}


@sqlite_only
async def test_files_that_are_being_removed(open_gateway: OpenGateway) -> None:
    """A file goes before its row; the sweep may be between the two."""
    async with open_gateway(audited=False) as running:
        await running.image()
        (file,) = (running.gateway.settings.data / "media").rglob("med_*")
        file.unlink()
        assert len(await running.breaches()) == 1
        running.clock.advance(25 * 3600)
        assert await running.breaches() == []


@sqlite_only
async def test_not_more_than_one_can_read(open_gateway: OpenGateway) -> None:
    async with open_gateway(audited=False) as running:
        for _ in range(30):
            await running.image()
        path = running.gateway.settings.data / "penstock.db"
    tampered = apsw.Connection(str(path))
    tampered.execute("UPDATE requests SET cost = cost + 1")
    tampered.close()
    async with open_gateway(labs=(running.lab, running.annex), works=False, audited=False) as running:
        assert sum(breach.startswith("costs: ") for breach in await running.breaches()) == 20


async def test_orphans_are_counted(open_gateway: OpenGateway) -> None:
    """One that may have been made, and nothing else: neither what was delivered nor what failed for certain."""
    async with open_gateway() as running:
        await lived(running)
        assert await audit.orphans(running.gateway.store) == (0, 0)
        running.lab.videos.next(faults.dropped)
        await running.finished((await running.video()).json["id"])
        assert await audit.orphans(running.gateway.store) == (1, 0)


def test_every_rule_has_words() -> None:
    assert all(words for words in audit.RULES.values())
