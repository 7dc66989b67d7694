"""`penstock webhooks`: list, redeliver, rotate."""

import asyncio
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from tests.command_line import done, penstock
from tests.gateway import MASTER, Installation, OpenGateway, sqlite_only


def prepare(open_gateway: OpenGateway, data: Path) -> tuple[str, str]:
    """Create messages about two cancelled videos: one exhausted, one waiting."""

    async def work() -> tuple[str, str]:
        async with open_gateway(works=False) as running:
            started = [await running.video(webhook_url="https://example.com/hook") for _ in range(2)]
            old, new = [response.json["id"] for response in started]
            for video in (old, new):
                await running.cancel(video)
            return old, new

    old, new = asyncio.run(work())
    with closing(apsw.Connection(str(data / "penstock.db"))) as connection:
        words = "state = 'exhausted', last_result = 'answered 500', deliveries = 4"
        connection.execute(f"UPDATE messages SET {words} WHERE request_id = ?", (old,))  # noqa: S608
    return old, new


@sqlite_only
def test_messages_are_listed_by_state(open_gateway: OpenGateway, installation: Installation) -> None:
    old, new = prepare(open_gateway, installation.data)
    where = ("--data", installation.data)
    rows = {row[0]: row[1:] for row in done("webhooks", "list", *where, PENSTOCK_SECRET=MASTER).lines}
    assert rows[f"msg_{old}"][:3] == ["video.cancelled", "exhausted", "4"]
    assert rows[f"msg_{old}"][-1] == "answered 500"
    assert rows[f"msg_{new}"][:3] == ["video.cancelled", "waiting", "0"]
    waiting = done("webhooks", "list", "--status", "waiting", *where, PENSTOCK_SECRET=MASTER).lines
    assert [row[0] for row in waiting] == [f"msg_{new}"]
    assert len(done("webhooks", "list", "--limit", "1", *where, PENSTOCK_SECRET=MASTER).lines) == 1


@sqlite_only
@pytest.mark.parametrize("prefix", ["msg_", ""])
def test_an_exhausted_message_is_sent_again(open_gateway: OpenGateway, installation: Installation, prefix: str) -> None:
    old, _ = prepare(open_gateway, installation.data)
    where = ("--data", installation.data)
    queued = done("webhooks", "redeliver", f"{prefix}{old}", *where, PENSTOCK_SECRET=MASTER)
    assert queued.out == f"queued msg_{old}\n"
    rows = {row[0]: row[2] for row in done("webhooks", "list", *where, PENSTOCK_SECRET=MASTER).lines}
    assert rows[f"msg_{old}"] == "waiting"


@sqlite_only
def test_all_exhausted_messages_are_sent_again(open_gateway: OpenGateway, installation: Installation) -> None:
    old, new = prepare(open_gateway, installation.data)
    where = ("--data", installation.data)
    for org, count in (("org_nonesuch", 0), (None, 1), (None, 0)):
        words = ("--org", org) if org else ()
        queued = done("webhooks", "redeliver", "--exhausted", *words, *where, PENSTOCK_SECRET=MASTER)
        assert queued.out == f"queued {count} messages\n"
    rows = {row[0]: row[2] for row in done("webhooks", "list", *where, PENSTOCK_SECRET=MASTER).lines}
    assert rows == {f"msg_{old}": "waiting", f"msg_{new}": "waiting"}


@pytest.mark.parametrize("words", [(), ("msg_1", "--exhausted")])
def test_one_message_or_all_exhausted_ones(data_folder: Path, words: tuple[str, ...]) -> None:
    ended = penstock("webhooks", "redeliver", *words, "--data", data_folder)
    assert (ended.status, ended.err.strip().endswith("give either the id of a message or --exhausted")) == (1, True)


def test_the_secrets_of_an_organization_and_of_alerts_are_shown(data_folder: Path) -> None:
    for words in ((), ("--alerts",)):
        first, second = (done("webhooks", "secret", *words, "--data", data_folder).out.strip() for _ in range(2))
        assert first == second
        assert first.startswith("whsec_")


def test_an_unknown_message_is_refused(data_folder: Path) -> None:
    ended = penstock("webhooks", "redeliver", "msg_nonesuch", "--data", data_folder)
    assert (ended.status, ended.out) == (1, "")
    assert "msg_nonesuch" in ended.err


def test_rotate_prints_a_new_secret(data_folder: Path) -> None:
    first, second = (done("webhooks", "rotate", "--data", data_folder).out.strip() for _ in range(2))
    assert first.startswith("whsec_")
    assert second.startswith("whsec_")
    assert first != second
    assert penstock("webhooks", "rotate", "--org", "org_nonesuch", "--data", data_folder).status == 1
