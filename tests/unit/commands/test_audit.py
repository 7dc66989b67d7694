"""`penstock audit`."""

import asyncio
from pathlib import Path

import apsw

from tests.command_line import done, penstock
from tests.gateway import MASTER, Installation, OpenGateway, sqlite_only


@sqlite_only
def test_an_audit_of_files_finds_a_changed_byte(open_gateway: OpenGateway, installation: Installation) -> None:
    async def make_image() -> None:
        async with open_gateway() as running:
            await running.image(headers={"x-service-replay": "record"})

    asyncio.run(make_image())
    options = ("--data", installation.data)
    assert done("audit", "--files", *options, PENSTOCK_SECRET=MASTER).out == "audit clean\n"
    stored = [path for path in (installation.data / "media").rglob("*") if path.is_file()]
    assert len(stored) == 2
    for path in stored:
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.write_bytes(content)
    assert done("audit", *options, PENSTOCK_SECRET=MASTER).out == "audit clean\n"
    ended = penstock("audit", "--files", *options, PENSTOCK_SECRET=MASTER)
    assert (ended.status, ended.out) == (1, "2 breaches\n")
    assert all(path.name in ended.err for path in stored)


def test_an_audit_finds_what_does_not_add_up(data_folder: Path) -> None:
    done("credit", "add", "--usd", "1", "--data", data_folder)
    assert done("audit", "--data", data_folder).out == "audit clean\n"
    connection = apsw.Connection(str(data_folder / "penstock.db"))
    connection.execute("UPDATE orgs SET available = available + 1")
    connection.close()
    ended = penstock("audit", "--data", data_folder)
    assert ended.status == 1
    assert ended.out.endswith("breaches\n")
    assert "balance" in ended.err


def test_an_audit_says_that_the_database_is_damaged(data_folder: Path) -> None:
    for name in ("one", "two"):
        done("orgs", "create", "--name", name, "--data", data_folder)
    path = data_folder / "penstock.db"
    database = apsw.Connection(str(path))
    (page,) = next(database.execute("SELECT rootpage FROM sqlite_master WHERE name = 'transfers'"))
    database.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 4096)
    ended = penstock("audit", "--data", data_folder)
    assert ended.status == 1
    assert "damaged" in ended.err
