"""Deliveries to real receivers over TLS: what arrives, and what bad ones can and cannot do."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openai
import pytest
import standardwebhooks
import trustme

from penstock.clock import Clock
from penstock.settings import Settings
from penstock.store.base import Row, Store, Transaction
from penstock.values import new_id
from penstock.vault import Vault
from penstock.webhooks.deliveries import Deliveries
from penstock.webhooks.events import WebhookSecrets, event, queue
from tests.databases import Database, database_for
from tests.http_client import (
    FakeResolver,
    never_respond,
    open_client,
    random_loopback,
    responding,
    server_tls,
    wait_until,
)
from tests.tcp_server import Connection, Script, TcpServer, response_head, serve

VAULT = Vault("v" * 43)
ORG = "org_" + "0" * 32
HOST = "hooks.example.com"
SECONDS = 0.6  # for attempts that are to time out


@pytest.fixture
def database(request: pytest.FixtureRequest) -> Database:
    return database_for(request, "sqlite")


@dataclass(frozen=True, slots=True)
class Rig:
    store: Store
    server: TcpServer
    deliveries: Deliveries
    names: FakeResolver

    async def attempt(self, url: str = "") -> tuple[Row, float]:
        """One attempt: the message afterwards, and how many seconds it took."""
        (message_id,) = await put(self.store, url or f"https://{HOST}:{self.server.port}/in?a=b")
        started = time.monotonic()
        await self.deliveries.deliver_due()
        seconds = time.monotonic() - started
        row = await self.store.one("get_message", id=message_id)
        assert row is not None
        return row, seconds


async def put(store: Store, *urls: str) -> list[str]:
    ids = [new_id("req", 1) for _ in urls]

    async def work(tx: Transaction) -> None:
        if await tx.one("get_balance", org_id=ORG) is None:
            await tx.run("add_org", id=ORG, name="Acme", billing="prepaid", created_at_ms=0)
        for request_id, url in zip(ids, urls, strict=True):
            await tx.run("put_request", id=request_id, org_id=ORG)
            body = event("video.completed", request_id, "café/1", outputs=[{"url": "https://x/ü"}])
            await queue(tx, org_id=ORG, request_id=request_id, url=url, kind="video.completed", body=body, at_ms=1)

    await store.write(work)
    return [f"msg_{request_id}" for request_id in ids]


@asynccontextmanager
async def rigged(
    database: Database,
    folder: Path,
    script: Script,
    *,
    tls: ssl.SSLContext | None = None,
    names: FakeResolver | None = None,
    address: str = "127.0.0.1",
    port: int = 0,
    **said: Any,
) -> AsyncIterator[Rig]:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    names = names or FakeResolver([address])
    chosen: dict[str, Any] = {"webhook_timeout_seconds": SECONDS, "egress_allow_hosts": (HOST,), **said}
    async with (
        serve(script, host=address, port=port, tls=tls or server_tls(authority, HOST)) as server,
        open_client(ca_file=folder / "ca.pem", resolver=names) as sender,
        database.open() as store,
    ):
        yield Rig(store, server, Deliveries(store, sender, VAULT, Clock(), Settings(**chosen)), names)


def read(request: bytes) -> tuple[str, dict[str, str], bytes]:
    start, body = request.split(b"\r\n\r\n", 1)
    first, *lines = start.decode().split("\r\n")
    return first, {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}, body


async def test_what_arrives_verifies(database: Database, tmp_path: Path) -> None:
    async with rigged(database, tmp_path, responding(), webhook_timeout_seconds=10) as rig:
        row, _ = await rig.attempt()
        secret = await WebhookSecrets(rig.store, VAULT, Clock()).secret(ORG)
    assert (row["state"], row["deliveries"], row["last_result"]) == ("delivered", 1, "status 200")
    first, headers, body = read(rig.server.requests[0])
    assert first == "POST /in?a=b HTTP/1.1"
    assert headers["host"] == f"{HOST}:{rig.server.port}"
    assert headers["webhook-id"] == row["id"] == f"msg_{row['request_id']}"
    assert headers["content-type"] == "application/json"
    assert not {"authorization", "cookie", "referer"} & headers.keys()
    assert b'"url":"https://x/\xc3\xbc"' in body
    standardwebhooks.Webhook(secret).verify(body, headers)
    openai.OpenAI(api_key="x").webhooks.verify_signature(body, headers, secret=secret)


# -------------------------------------------------------------------------------------------------------- bad receivers


async def drips_its_head(connection: Connection) -> None:
    await connection.read_request()
    for byte in response_head("content-length: 0"):
        await connection.send(bytes([byte]))
        await asyncio.sleep(0.05)


async def drips_its_body(connection: Connection) -> None:
    await connection.read_request()
    await connection.send(response_head("content-length: 1000"))
    for _ in range(1000):
        await connection.send(b"x")
        await asyncio.sleep(0.05)


async def closes_within_its_head(connection: Connection) -> None:
    await connection.read_request()
    await connection.send(b"HTTP/1.1 200 OK\r\ncontent-le")


async def resets(connection: Connection) -> None:
    await connection.read_request()
    connection.reset()


async def talks_nonsense(connection: Connection) -> None:
    await connection.read_request()
    await connection.send(b"hello\r\n\r\n")


async def never_reads(connection: Connection) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    "script",
    [never_respond, drips_its_head, drips_its_body, closes_within_its_head, resets, talks_nonsense, never_reads],
)
async def test_a_bad_receiver_costs_an_attempt_and_its_time(database: Database, tmp_path: Path, script: Script) -> None:
    async with rigged(database, tmp_path, script) as rig:
        row, seconds = await rig.attempt()
    assert (row["state"], row["deliveries"]) == ("waiting", 1)
    assert seconds < SECONDS + 0.5
    assert HOST not in row["last_result"]
    assert rig.server.connections == 1


async def test_an_endless_answer_is_not_read(database: Database, tmp_path: Path) -> None:
    async def script(connection: Connection) -> None:
        await connection.read_request()
        await connection.send(response_head(f"content-length: {10 * 2**30}", status=500))
        while True:
            await connection.send(b"x" * 65536)

    async with rigged(database, tmp_path, script, webhook_timeout_seconds=10) as rig:
        row, seconds = await rig.attempt()
        sent = rig.server.sent_bytes
    assert (row["state"], row["last_result"]) == ("waiting", "status 500")
    assert seconds < 5
    assert sent < 16 * 2**20, "what the kernel takes is not what we read"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_a_failure_and_not_followed(database: Database, tmp_path: Path, status: int) -> None:
    async with serve(responding()) as inside:
        redirect = responding(b"", f"location: http://127.0.0.1:{inside.port}/latest/meta-data", status=status)
        async with rigged(database, tmp_path, redirect, webhook_timeout_seconds=10) as rig:
            row, _ = await rig.attempt()
        assert (row["state"], row["last_result"]) == ("waiting", f"status {status}")
        assert inside.connections == 0


@pytest.mark.parametrize("names", [("other.example.com",), ()])
async def test_a_certificate_must_be_the_hosts_and_trusted(
    database: Database, tmp_path: Path, names: tuple[str, ...]
) -> None:
    authority = trustme.CA()  # a stranger's
    async with rigged(database, tmp_path, responding(), tls=server_tls(authority, *(names or (HOST,)))) as rig:
        row, _ = await rig.attempt()
    assert (row["state"], row["deliveries"]) == ("waiting", 1)
    assert rig.server.requests == []


# ------------------------------------------------------------------------------------------------------- the way there


async def test_a_name_of_ours_is_not_reached(database: Database, tmp_path: Path) -> None:
    """It passed at submission; what it resolves to is judged when we connect, at every attempt anew."""
    address = random_loopback()
    names = FakeResolver(["93.184.216.34", address], [address])
    async with rigged(
        database, tmp_path, responding(), names=names, address=address, port=8443, egress_allow_hosts=()
    ) as rig:
        for asked in (1, 2):
            row, _ = await rig.attempt(f"https://{HOST}:8443/in")
            assert (row["state"], row["deliveries"]) == ("waiting", 1)
            assert address not in row["last_result"]
            assert len(names.hosts) == asked
        assert rig.server.connections == 0


async def test_hanging_receivers_delay_no_other(database: Database, tmp_path: Path) -> None:
    """In small, and over real sockets; the thousand are in tests/faults."""

    async def script(connection: Connection) -> None:
        if f"host: {HOST}".encode() in (await connection.read_request()).lower():
            await connection.respond()
        await connection.wait_closed()

    hosts = tuple(f"h{number}.example.com" for number in range(8))
    allowed = (HOST, *hosts)
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "all.pem")
    async with (
        serve(script, tls=server_tls(authority, *allowed)) as server,
        open_client(ca_file=tmp_path / "all.pem", resolver=FakeResolver(["127.0.0.1"])) as sender,
        database.open() as store,
    ):
        deliveries = Deliveries(store, sender, VAULT, Clock(), Settings(egress_allow_hosts=allowed))
        task = asyncio.create_task(deliveries.run())
        try:
            await put(store, *(f"https://{host}:{server.port}/in" for host in hosts for _ in range(5)))
            deliveries.wake()
            await wait_until(lambda: len(server.requests) == 40)
            started = time.monotonic()
            await put(store, f"https://{HOST}:{server.port}/in")
            deliveries.wake()
            await wait_until(lambda: len(server.requests) == 41)
            assert time.monotonic() - started < 2
            assert f"host: {HOST}".encode() in server.requests[-1].lower()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
