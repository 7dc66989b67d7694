"""The audit finds each kind of breach, and nothing where all is well."""

import re

import apsw
import pytest

from penstock.accounts import audit
from tests.house import House, OpenHouse, sqlite_only
from tests.upstreams import faults

HOOK = "https://receiver.example/hook"

# What somebody, or some fault of ours, did to the database; and what the audit says of it.
DEEDS = {
    "UPDATE orgs SET available = available + 1": "balances: ",
    "UPDATE orgs SET held = held + 5": "balances: ",
    "DELETE FROM transfers WHERE kind = 'credit'": "balances: ",
    "DELETE FROM transfers WHERE kind IN ('post', 'void')": "open_holds: ",
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
    "UPDATE attempts SET state = 'made', cost = 7 WHERE state = 'failed'": "losses: ",
    "INSERT INTO attempts SELECT 'att_x', request_id, org_id, part, choice + 1, count, provider, 'failed', NULL, NULL,"
    " NULL, NULL, NULL, 1, 1, NULL, 0 FROM attempts WHERE state = 'failed';"
    "UPDATE attempts SET state = 'unknown' WHERE state = 'failed' AND id <> 'att_x'": "attempts: ",
    "DELETE FROM usage_slots": "usage: ",
    "UPDATE usage_slots SET cost = cost + 1": "usage: ",
    "DELETE FROM media": "",
    "UPDATE media SET size_bytes = size_bytes + 1": "media: ",
    "INSERT INTO media SELECT 'med_x', org_id, request_id, role, 9, content_type, 1, sha256, 1, 1, NULL, 1, 9e12"
    " FROM media LIMIT 1": "media: ",
}


async def lived(house: House) -> None:
    """A film that was made, one that failed, a picture, and a refusal."""
    house.lab.videos.next(faults.ok, faults.fails)
    for _ in range(2):
        await house.finished((await house.video(webhook_url=HOOK)).json["id"])
    await house.image()


async def test_all_is_well(open_house: OpenHouse) -> None:
    async with open_house() as house:
        assert await house.breaches() == []
        await lived(house)
        house.lab.videos.next(faults.never_ends)
        await house.video(webhook_url=HOOK)
        assert await house.breaches() == []


@pytest.mark.parametrize(("deed", "words"), DEEDS.items())
@sqlite_only
async def test_breaches(open_house: OpenHouse, deed: str, words: str) -> None:
    async with open_house(audited=False) as house:
        await lived(house)
        path = house.gateway.settings.data / "penstock.db"
    tampered = apsw.Connection(str(path))
    tampered.execute(deed)
    tampered.close()
    async with open_house(labs=(house.lab, house.annex), works=False, audited=False) as house:
        breaches = await house.breaches()
        assert any(breach.startswith(words) for breach in breaches) or not words, breaches
        assert all(re.match(r"[a-z_]+: ", breach) for breach in breaches)


@sqlite_only
async def test_files_that_are_missing_or_short(open_house: OpenHouse) -> None:
    async with open_house(audited=False) as house:
        await house.image()
        await house.image()
        first, second = sorted(path for path in (house.gateway.settings.data / "media").rglob("med_*"))
        first.unlink()
        second.write_bytes(b"half")
        told = sorted(await house.breaches())
        assert len(told) == 2
        assert {told[0].split(" ", 3)[2], told[1].split(" ", 3)[2]} == {"is", "has"}


@sqlite_only
async def test_files_that_are_being_removed(open_house: OpenHouse) -> None:
    """A file goes before its row; the sweep may be between the two."""
    async with open_house(audited=False) as house:
        await house.image()
        (file,) = (house.gateway.settings.data / "media").rglob("med_*")
        file.unlink()
        assert len(await house.breaches()) == 1
        house.clock.advance(25 * 3600)
        assert await house.breaches() == []


@sqlite_only
async def test_not_more_than_one_can_read(open_house: OpenHouse) -> None:
    async with open_house(audited=False) as house:
        for _ in range(30):
            await house.image()
        path = house.gateway.settings.data / "penstock.db"
    tampered = apsw.Connection(str(path))
    tampered.execute("UPDATE requests SET cost = cost + 1")
    tampered.close()
    async with open_house(labs=(house.lab, house.annex), works=False, audited=False) as house:
        assert sum(breach.startswith("costs: ") for breach in await house.breaches()) == 20


async def test_orphans_are_counted(open_house: OpenHouse) -> None:
    """One that may have been made, and nothing else: neither what was delivered nor what failed for certain."""
    async with open_house() as house:
        await lived(house)
        assert await audit.orphans(house.gateway.store) == (0, 0)
        house.lab.videos.next(faults.dropped)
        await house.finished((await house.video()).json["id"])
        assert await audit.orphans(house.gateway.store) == (1, 0)


def test_every_rule_has_words() -> None:
    assert all(words for words in audit.RULES.values())
