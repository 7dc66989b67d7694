"""`penstock doctor`: what is wrong, and what to do about it."""

import json
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from penstock.commands import doctor
from penstock.media.storage import Folder
from penstock.settings import Settings
from penstock.vault import Vault
from tests.command_line import Ended, done, penstock
from tests.gateway import OpenGateway, postgres_only
from tests.manual_clock import SetClock
from tests.ports import unused_port
from tests.signed_files import signer_command, signer_folder
from tests.stories.processes import Installation, Serving


def states(ended: Ended) -> dict[str, str]:
    return {finding["check"]: finding["state"] for finding in json.loads(ended.out)}


def free_port() -> dict[str, str]:
    return {"PENSTOCK_PORT": str(unused_port())}


def test_a_sound_installation_has_no_problem(data_folder: Path) -> None:
    ended = done("doctor", "--json", "--data", data_folder, **free_port())
    expected = {"configuration": "ok", "database": "ok", "provenance": "ok", "storage": "ok", "providers": "ok"}
    assert states(ended) == expected | {"public URL": "note", "gateway": "note"}
    assert not any(path.is_file() for path in (data_folder / "media").rglob("*")), "the probe is gone"


def test_a_running_gateway_is_found(served: Serving, served_installation: Installation) -> None:
    ended = penstock("doctor", "--data", served_installation.data)
    assert [row[1:3] for row in ended.lines if row[0] == "gateway"] == [
        ["ok", f"a gateway answers at {served.url}: ready"]
    ]


def test_each_problem_is_named_and_gives_exit_status_1(data_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("prot = 1")
    wrong = {
        "database": {"PENSTOCK_SECRET": "x" * 40},
        "storage": {"PENSTOCK_MEDIA": "nonesuch://bucket"},
        "providers": {"PENSTOCK_DISABLED_PROVIDERS": "atelier"},
        "configuration": {"PENSTOCK_CONFIG": str(tmp_path / "bad.toml")},
    }
    for check, environment in wrong.items():
        ended = penstock("doctor", "--json", "--data", data_folder, **environment, **free_port())
        assert (ended.status, states(ended)[check]) == (1, "problem"), (check, ended)


@pytest.mark.parametrize("option", ["nonesuch=1", "timeout=soon", "allow_http=perhaps"])
def test_a_wrong_option_of_the_object_store_is_a_problem_of_the_storage(data_folder: Path, option: str) -> None:
    environment = {"PENSTOCK_MEDIA": "s3://bucket", "PENSTOCK_MEDIA_OPTIONS": f"region=us-east-1,{option}"}
    ended = penstock("doctor", "--json", "--data", data_folder, **environment, **free_port())
    [found] = [finding for finding in json.loads(ended.out) if finding["check"] == "storage"]
    assert (ended.status, found["state"]) == (1, "problem")
    assert "media_options cannot be used" in found["found"]


def test_a_certificate_that_expires_soon_is_pointed_out() -> None:
    vault = Vault("s" * 40)
    for day, state in ((datetime(2056, 9, 30, tzinfo=UTC), "ok"), (datetime(2056, 10, 3, tzinfo=UTC), "note")):
        [found] = doctor._check_certificate(Settings(), vault, day)
        assert (found.check, found.state) == ("provenance", state)
        assert "2056-11-01" in found.found
    [found] = doctor._check_certificate(Settings(provenance_key="key.pem"), vault, day)
    assert (found.state, "need each other" in found.found) == ("problem", True)


def test_a_certificate_of_ones_own_without_time_stamps_is_pointed_out(tmp_path: Path) -> None:
    signer = signer_command(signer_folder(tmp_path / "signer"))
    vault, day = Vault("s" * 40), datetime(2026, 12, 1, tzinfo=UTC)
    for url, state in (("", "note"), ("https://stamps.example.com", "ok")):
        settings = Settings(provenance_signer=signer, provenance_timestamp_url=url)
        [found] = doctor._check_certificate(settings, vault, day)
        assert (found.state, "become invalid" in found.found) == (state, state == "note")


def test_a_proxy_that_is_not_trusted_is_pointed_out(data_folder: Path) -> None:
    environment = {"PENSTOCK_BEHIND_TLS": "true", **free_port()}
    assert states(done("doctor", "--json", "--data", data_folder, **environment))["proxies"] == "note"
    environment["PENSTOCK_TRUSTED_PROXIES"] = "10.0.0.0/8"
    assert "proxies" not in states(done("doctor", "--json", "--data", data_folder, **environment))


class StorageWithOtherBytes(Folder):
    async def read(self, key: str, start: int, length: int) -> AsyncIterator[bytes]:
        yield b"something else"


def test_a_storage_that_returns_other_bytes_is_a_problem(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "open_storage", lambda *settings: StorageWithOtherBytes(data_folder / "media"))
    ended = penstock("doctor", "--json", "--data", data_folder, **free_port())
    [found] = [finding for finding in json.loads(ended.out) if finding["check"] == "storage"]
    assert (ended.status, found["state"]) == (1, "problem")
    assert "returns other bytes than were written" in found["found"]
    assert found["advice"]


def test_a_credential_that_cannot_be_decrypted_is_a_problem(data_folder: Path) -> None:
    file = data_folder / "credential.txt"
    file.write_text("fal-key-of-the-second-account")
    account = done("accounts", "add", "fal", "--from-file", file, "--data", data_folder).out.split()[1]
    assert states(done("doctor", "--json", "--data", data_folder, **free_port()))["accounts"] == "ok"
    with closing(sqlite3.connect(Settings(data=data_folder).sqlite_file)) as connection, connection:
        connection.execute("UPDATE accounts SET secret = zeroblob(64)")
    ended = penstock("doctor", "--json", "--data", data_folder, **free_port())
    [found] = [finding for finding in json.loads(ended.out) if finding["check"] == "accounts"]
    assert (ended.status, found["state"], account in found["found"]) == (1, "problem", True)


def test_another_program_on_the_port_is_a_problem(data_folder: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as other:
        threading.Thread(target=other.serve_forever).start()
        ended = penstock("doctor", "--json", "--data", data_folder, PENSTOCK_PORT=str(other.server_port))
        other.shutdown()
    assert (ended.status, states(ended)["gateway"]) == (1, "problem")


def test_a_folder_that_was_never_used_is_left_alone(tmp_path: Path) -> None:
    ended = done("doctor", "--json", "--data", tmp_path / "new", **free_port())
    assert states(ended)["database"] == "note"
    assert not (tmp_path / "new").exists()


def test_models_that_a_provider_shuts_down_are_named(data_folder: Path) -> None:
    """Their shutdown date has passed, so that they are named on any day."""
    ended = done("doctor", "--data", data_folder, GEMINI_API_KEY="x", **free_port())
    named = [row[2] for row in ended.lines if row[0] == "models"]
    assert "gemini serves google/gemini-2.5-flash only until 2026-10-16" in named


@postgres_only
async def test_a_clock_that_differs_from_the_database_is_a_problem(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_gateway(works=False) as running:
        assert (await doctor._compare_clocks(running.gateway.store)).state == "ok"
        monkeypatch.setattr(doctor, "Clock", lambda: SetClock(90))
        found = await doctor._compare_clocks(running.gateway.store)
        assert (found.state, "ahead of the database's" in found.found) == ("problem", True)
