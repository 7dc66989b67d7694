"""Deliveries go on after kill -9, without file descriptors, and past a thousand receivers that hang."""

import asyncio
import json
import os
import random
import signal
import sys
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trustme

from penstock.store.base import Row, Store, Transaction
from penstock.values import OrgId, new_id
from penstock.webhooks.events import event_body, message_row
from tests.databases import sqlite_database
from tests.http_client import server_tls
from tests.tcp_server import Connection, Script, TcpServer, serve
from tests.webhook_receivers import FIRST_DELAYS

pytestmark = pytest.mark.faults

ORG = OrgId("org_" + "0" * 32)
ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True, slots=True)
class Rig:
    store: Store
    server: TcpServer
    folder: Path

    async def put(self, *hosts: str) -> list[str]:
        ids = [new_id("req", 1) for _ in hosts]

        async def work(tx: Transaction) -> None:
            if await tx.one("get_balance", org_id=ORG) is None:
                await tx.run("add_org", id=ORG, name="Acme", billing="prepaid", created_at_ms=0)
            for request_id, host in zip(ids, hosts, strict=True):
                url = f"https://{host}.example.com:{self.server.port}/in"
                await tx.run("put_request", id=request_id, org_id=ORG)
                body = event_body("video.completed", request_id, "m", outputs=[{"url": "https://x/1"}])
                await tx.put(
                    "add_message",
                    **message_row(
                        org_id=ORG, request_id=request_id, url=url, event="video.completed", body=body, at_ms=1
                    ),
                )

        await self.store.write(work)
        return [f"msg_{request_id}" for request_id in ids]

    async def messages(self) -> list[Row]:
        return await self.store.slow("list_messages", state=None, limit=10_000)

    @asynccontextmanager
    async def deliverer(
        self,
        hosts: int = 1,
        failpoints: str = "",
        *,
        later_seconds: float = 0,
        spare_files: int = 0,
        timeout_seconds: float = 30,
    ) -> AsyncIterator[asyncio.subprocess.Process]:
        """Another process at work on the same file; killed in the end."""
        names = tuple(f"h{number}.example.com" for number in range(hosts))
        told = {
            "database": f"{self.folder}/penstock.db",
            "ca_file": f"{self.folder}/ca.pem",
            "settings": {
                "egress_allow_hosts": names,
                "webhook_timeout_seconds": timeout_seconds,
                "webhook_delays_seconds": FIRST_DELAYS,
            },
            "later_seconds": later_seconds,
            "spare_files": spare_files,
        }
        environ = {**os.environ, "PENSTOCK_FAILPOINTS": failpoints}
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.faults.deliverer", json.dumps(told), env=environ, cwd=ROOT
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


@asynccontextmanager
async def rigged(folder: Path, script: Script) -> AsyncIterator[Rig]:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    async with (
        serve(script, tls=server_tls(authority, "*.example.com")) as server,
        sqlite_database(folder / "penstock.db").open() as store,
    ):
        yield Rig(store, server, folder)


async def until(met: Callable[[], Awaitable[bool]], seconds: float = 40) -> None:
    async with asyncio.timeout(seconds):
        while not await met():  # noqa: ASYNC110 (another process changes what is looked at)
            await asyncio.sleep(0.02)


def read(request: bytes) -> tuple[str, str, bytes]:
    """Id, timestamp and body of a delivery."""
    start, body = request.split(b"\r\n\r\n", 1)
    headers = dict(line.lower().split(": ", 1) for line in start.decode().split("\r\n")[1:])
    return headers["webhook-id"], headers["webhook-timestamp"], body


def respond_in_turn(*statuses: int) -> Script:
    """Each message is answered with these in turn; the last one stays."""
    seen: Counter[str] = Counter()

    async def script(connection: Connection) -> None:
        while True:
            message_id, _, _ = read(await connection.read_request())
            seen[message_id] += 1
            await connection.respond(status=statuses[min(seen[message_id], len(statuses)) - 1])

    return script


@pytest.mark.parametrize(
    ("place", "statuses", "before", "deliveries"),
    [
        ("hook.sent", (500, 200), 0, 1),  # how it went was not written down: it does not count
        ("hook.after_2xx", (200,), 0, 1),  # one duplicate
        ("hook.between", (500, 200), 1, 2),
    ],
)
async def test_killed_between_sending_and_recording(
    tmp_path: Path, place: str, statuses: tuple[int, ...], before: int, deliveries: int
) -> None:
    async with rigged(tmp_path, respond_in_turn(*statuses)) as rig:
        (message_id,) = await rig.put("h0")
        async with rig.deliverer(failpoints=f"{place}=kill") as process:
            assert await asyncio.wait_for(process.wait(), 30) == -signal.SIGKILL
        (row,) = await rig.messages()
        assert (row["state"], row["deliveries"]) == ("waiting", before)

        async def delivered() -> bool:
            return bool((await rig.messages())[0]["state"] == "delivered")

        async with rig.deliverer(later_seconds=60):
            await until(delivered)
        (row,) = await rig.messages()
        assert (row["state"], row["deliveries"]) == ("delivered", deliveries)
        arrived = [read(request) for request in rig.server.requests]
        assert len(arrived) == 2
        assert len({(each[0], each[2]) for each in arrived}) == 1
        assert arrived[0][0] == message_id
        assert len({each[1] for each in arrived}) == len(arrived), "each attempt has its own timestamp"


async def deliver_all(rig: Rig, later: float) -> None:
    """Run one process after the other, each a hundred seconds later, until no message waits."""
    while counts := {row["id"]: row["deliveries"] for row in await rig.messages() if row["state"] == "waiting"}:

        async def tried(counts: dict[str, int] = counts) -> bool:
            """Whether each message that waits was tried once more; all of them are due."""
            waiting = [row for row in await rig.messages() if row["state"] == "waiting"]
            return all(row["deliveries"] > counts[row["id"]] for row in waiting)

        async with rig.deliverer(later_seconds=later):
            await until(tried)
        later += 100


@pytest.mark.slow
async def test_killed_at_random_moments(tmp_path: Path) -> None:
    """Whatever a dozen kills cut short: no schedule starts over, and no 2xx was needed twice without a crash."""
    chance = random.Random(4711)
    responses: defaultdict[str, list[int]] = defaultdict(list)

    async def script(connection: Connection) -> None:
        while True:
            message_id, _, _ = read(await connection.read_request())
            await asyncio.sleep(chance.random() * 0.1)
            responses[message_id].append(chance.choice([200, 204, 500, 503]))
            await connection.respond(status=responses[message_id][-1])

    async with rigged(tmp_path, script) as rig:
        ids = await rig.put(*["h0"] * 40)
        later = 0.0
        for _ in range(12):
            async with rig.deliverer(later_seconds=later) as process:
                before = len(rig.server.requests)

                async def moved(before: int = before, process: Any = process) -> bool:
                    ended = all(row["state"] != "waiting" for row in await rig.messages())
                    return ended or len(rig.server.requests) > before or process.returncode is not None

                await until(moved)
                await asyncio.sleep(chance.random() * 0.3)
            later += 100

        await deliver_all(rig, later)
        rows = {row["id"]: row for row in await rig.messages()}
        bodies = defaultdict(set)
        for request in rig.server.requests:
            message_id, _, body = read(request)
            bodies[message_id].add(body)
        assert rows.keys() == set(ids)
        for message_id, row in rows.items():
            assert row["deliveries"] <= 4
            assert len(responses[message_id]) <= 4 + 12, "more often than it was tried and cut short"
            assert len(bodies[message_id]) <= 1
            success = any(200 <= status < 300 for status in responses[message_id])
            if row["state"] == "delivered":
                assert success
            else:
                assert (row["state"], row["deliveries"]) == ("exhausted", 4)


@pytest.mark.slow
async def test_out_of_file_descriptors(tmp_path: Path) -> None:
    """What this machine lacks is not the receivers' fault: no attempt is spent, and all arrives afterwards."""

    async def script(connection: Connection) -> None:
        while True:
            await connection.read_request()
            await asyncio.sleep(1)
            await connection.respond()

    async with rigged(tmp_path, script) as rig:
        await rig.put(*(f"h{number}" for number in range(200)))
        async with rig.deliverer(200, spare_files=12) as process:

            async def starved() -> bool:
                lacking = [row for row in await rig.messages() if row["deliveries"] == 0 and row["last_result"]]
                return len(lacking) > 20

            await until(starved)
            assert process.returncode is None
            assert max(row["deliveries"] for row in await rig.messages()) <= 1
            process.send_signal(signal.SIGUSR1)

            async def delivered() -> bool:
                return all(row["state"] == "delivered" for row in await rig.messages())

            await until(delivered)
        assert {row["deliveries"] for row in await rig.messages()} == {1}


@pytest.mark.slow
async def test_a_thousand_hanging_receivers(tmp_path: Path) -> None:
    """One more message arrives while all of them hang."""
    hanging: set[str] = set()
    arrived_among: list[int] = []

    async def script(connection: Connection) -> None:
        message_id, _, _ = read(await connection.read_request())
        if message_id == healthy:
            arrived_among.append(len(hanging))
            await connection.respond()
        else:
            hanging.add(message_id)
        await connection.wait_closed()
        hanging.discard(message_id)

    healthy = ""
    async with rigged(tmp_path, script) as rig, rig.deliverer(1001, timeout_seconds=600):
        await rig.put(*(f"h{number}" for number in range(1000)))

        async def all_hang() -> bool:
            return len(hanging) == 1000

        await until(all_hang, 120)
        (healthy,) = await rig.put("h1000")

        async def came() -> bool:
            return bool(arrived_among)

        await until(came)
        assert arrived_among == [1000]
