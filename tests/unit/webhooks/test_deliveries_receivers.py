"""Deliveries to real receivers over TLS: correct, slow, broken and hostile ones."""

import asyncio
import ssl
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
from penstock.webhooks.events import WebhookSecrets, event_body, message_row
from tests.databases import Database
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
from tests.webhook_receivers import ORG, VAULT, StepwiseDeliveries, add_org, new_deliveries

HOST = "hooks.example.com"
TIMEOUT_SECONDS = 0.6  # for deliveries that time out
FAR_SECONDS = 60  # a delivery that lasts this long would never have ended


@dataclass(frozen=True, slots=True)
class Rig:
    store: Store
    server: TcpServer
    deliveries: StepwiseDeliveries
    names: FakeResolver

    async def deliver(self, url: str = "") -> Row:
        """Make one delivery and return the row of its message."""
        (message_id,) = await add_messages(self.store, url or f"https://{HOST}:{self.server.port}/in?a=b")
        async with asyncio.timeout(FAR_SECONDS):
            await self.deliveries.deliver_due_messages()
        row = await self.store.one("get_message", id=message_id)
        assert row is not None
        return row


async def add_messages(store: Store, *urls: str) -> list[str]:
    """Add a message for each URL. Returns their ids."""
    ids = [new_id("req", 1) for _ in urls]

    async def work(tx: Transaction) -> None:
        await add_org(tx, ORG)
        for request_id, url in zip(ids, urls, strict=True):
            await tx.run("put_request", id=request_id, org_id=ORG)
            body = event_body("video.completed", request_id, "café/1", outputs=[{"url": "https://x/ü"}])
            await tx.put(
                "add_message",
                **message_row(org_id=ORG, request_id=request_id, url=url, event="video.completed", body=body, at_ms=1),
            )

    await store.write(work)
    return [f"msg_{request_id}" for request_id in ids]


@asynccontextmanager
async def open_rig(
    sqlite: Database,
    folder: Path,
    script: Script,
    *,
    tls: ssl.SSLContext | None = None,
    names: FakeResolver | None = None,
    address: str = "127.0.0.1",
    port: int = 0,
    **settings: Any,
) -> AsyncIterator[Rig]:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    names = names or FakeResolver([address])
    chosen: dict[str, Any] = {"webhook_timeout_seconds": TIMEOUT_SECONDS, "egress_allow_hosts": (HOST,), **settings}
    async with (
        serve(script, host=address, port=port, tls=tls or server_tls(authority, HOST)) as server,
        open_client(ca_file=folder / "ca.pem", resolver=names) as client,
        sqlite.open() as store,
    ):
        yield Rig(store, server, new_deliveries(store, client, Clock(), Settings(**chosen)), names)


def read(request: bytes) -> tuple[str, dict[str, str], bytes]:
    start, body = request.split(b"\r\n\r\n", 1)
    first, *lines = start.decode().split("\r\n")
    return first, {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}, body


async def test_a_delivered_message_verifies(sqlite: Database, tmp_path: Path) -> None:
    async with open_rig(sqlite, tmp_path, responding(), webhook_timeout_seconds=10) as rig:
        row = await rig.deliver()
        secret = await WebhookSecrets(rig.store, VAULT, Clock()).get_secret(ORG)
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
    for byte in response_head("x-long: " + "x" * 100_000):
        await connection.send(bytes([byte]))
        await asyncio.sleep(0.05)


async def drips_its_body(connection: Connection) -> None:
    await connection.read_request()
    await connection.send(response_head("content-length: 1000000"))
    while True:
        await connection.send(b"x")
        await asyncio.sleep(0.05)


async def closes_within_its_head(connection: Connection) -> None:
    await connection.read_request()
    await connection.send(b"HTTP/1.1 200 OK\r\ncontent-le")


async def resets(connection: Connection) -> None:
    await connection.read_request()
    connection.reset()


async def sends_nonsense(connection: Connection) -> None:
    await connection.read_request()
    await connection.send(b"hello\r\n\r\n")


async def never_reads(connection: Connection) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    "script",
    [never_respond, drips_its_head, drips_its_body, closes_within_its_head, resets, sends_nonsense, never_reads],
)
async def test_a_bad_receiver_costs_one_delivery(sqlite: Database, tmp_path: Path, script: Script) -> None:
    connections = 0
    for seconds in (TIMEOUT_SECONDS, FAR_SECONDS / 2):
        async with open_rig(sqlite, tmp_path, script, webhook_timeout_seconds=seconds) as rig:
            row = await rig.deliver()
        assert (row["state"], row["deliveries"]) == ("waiting", 1)
        assert HOST not in row["last_result"]
        connections = rig.server.connections
        if connections:  # on a busy machine even connecting may take longer than the first timeout
            break
    assert connections == 1


async def test_an_endless_response_is_not_read(sqlite: Database, tmp_path: Path) -> None:
    async def script(connection: Connection) -> None:
        await connection.read_request()
        await connection.send(response_head(f"content-length: {10 * 2**30}", status=500))
        while True:
            await connection.send(b"x" * 65536)

    async with open_rig(sqlite, tmp_path, script, webhook_timeout_seconds=10) as rig:
        row = await rig.deliver()
        sent = rig.server.sent_bytes
    assert (row["state"], row["last_result"]) == ("waiting", "status 500")
    assert sent < 16 * 2**20, "the kernel buffers some, but little is read"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_a_failure_and_not_followed(sqlite: Database, tmp_path: Path, status: int) -> None:
    async with serve(responding()) as inside:
        redirect = responding(b"", f"location: http://127.0.0.1:{inside.port}/latest/meta-data", status=status)
        async with open_rig(sqlite, tmp_path, redirect, webhook_timeout_seconds=10) as rig:
            row = await rig.deliver()
        assert (row["state"], row["last_result"]) == ("waiting", f"status {status}")
        assert inside.connections == 0


@pytest.mark.parametrize("names", [("other.example.com",), ()])
async def test_a_certificate_must_be_trusted_and_name_the_host(
    sqlite: Database, tmp_path: Path, names: tuple[str, ...]
) -> None:
    authority = trustme.CA()  # not the one that is trusted
    async with open_rig(sqlite, tmp_path, responding(), tls=server_tls(authority, *(names or (HOST,)))) as rig:
        row = await rig.deliver()
    assert (row["state"], row["deliveries"]) == ("waiting", 1)
    assert rig.server.requests == []


# ------------------------------------------------------------------------------------------------------- the way there


async def test_a_name_that_resolves_to_a_private_address_is_not_connected(sqlite: Database, tmp_path: Path) -> None:
    """The URL passed when the video was submitted; each delivery checks the addresses that its name resolves to."""
    address = random_loopback()
    names = FakeResolver(["93.184.216.34", address], [address])
    async with open_rig(
        sqlite, tmp_path, responding(), names=names, address=address, port=8443, egress_allow_hosts=()
    ) as rig:
        for lookups in (1, 2):
            row = await rig.deliver(f"https://{HOST}:8443/in")
            assert (row["state"], row["deliveries"]) == ("waiting", 1)
            assert address not in row["last_result"]
            assert len(names.hosts) == lookups
        assert rig.server.connections == 0


async def test_hanging_receivers_delay_no_other(sqlite: Database, tmp_path: Path) -> None:
    """A small number over real sockets; tests/faults has a thousand."""

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
        open_client(ca_file=tmp_path / "all.pem", resolver=FakeResolver(["127.0.0.1"])) as client,
        sqlite.open() as store,
    ):
        deliveries = new_deliveries(store, client, Clock(), Settings(egress_allow_hosts=allowed))
        task = asyncio.create_task(deliveries.run())
        try:
            hanging = await add_messages(
                store, *(f"https://{host}:{server.port}/in" for host in hosts for _ in range(5))
            )
            deliveries.wake()
            await wait_until(lambda: len(server.requests) == 40)
            await add_messages(store, f"https://{HOST}:{server.port}/in")
            deliveries.wake()
            await wait_until(lambda: len(server.requests) == 41)
            assert f"host: {HOST}".encode() in server.requests[-1].lower()
            rows = [await store.one("get_message", id=message_id) for message_id in hanging]
            assert [row["deliveries"] for row in rows if row] == [0] * 40, "the others still hang"
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
