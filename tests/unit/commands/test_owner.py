"""Commands that root runs beside a service of another user leave nothing that this user cannot use."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

_USER = 61234  # has no name and no groups, like that of a container
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run a command beside another user's service")


@pytest.fixture
def service() -> Iterator[Path]:
    """The data folder of another user, to which nobody else can get, as systemd's of a service with DynamicUser=yes."""
    with tempfile.TemporaryDirectory(prefix="penstock-owner-") as folder:
        data = Path(folder) / "data"
        data.mkdir(mode=0o700)
        os.chown(data, _USER, _USER)
        run(data, "init")
        assert owners(data) == {_USER}
        yield data


def run(data: Path, *words: str | Path, status: int = 0) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    ended = subprocess.run(
        [sys.executable, "-m", "penstock", *map(str, words)],
        env=environment | {"PENSTOCK_DATA": str(data)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == status, ended
    return ended.stdout + ended.stderr


def owners(data: Path) -> set[int]:
    return {path.lstat().st_uid for path in [data, *data.rglob("*")]}


@pytest.mark.parametrize(
    "words",
    [
        ["doctor"],
        ["secret", "rotate"],
        ["secret", "reseal"],
        ["audit", "--files"],
        ["keys", "create"],
        ["orgs", "create", "--name", "other"],
        ["webhooks", "secret"],
        ["webhooks", "rotate"],
        ["recordings", "list"],
        ["init"],
    ],
    ids=" ".join,
)
@pytest.mark.sweep(3)
def test_everything_in_the_data_folder_stays_its_owners(service: Path, words: list[str]) -> None:
    run(service, *words)
    assert owners(service) == {_USER}


def test_the_caller_owns_a_backup_and_exported_recordings(service: Path, tmp_path: Path) -> None:
    """The folder of the test is one that only root can reach."""
    assert not tmp_path.parent.stat().st_mode & 0o077
    run(service, "backup", tmp_path / "copy", "--media")
    run(service, "recordings", "export", "--to", tmp_path / "recordings")
    run(service, "recordings", "import", tmp_path)
    assert owners(tmp_path / "copy") == {0}
    assert owners(service) == {_USER}


def test_a_command_of_a_caller_reads_the_key_as_the_owner(service: Path) -> None:
    run(service, "models", "list", "--url", "http://127.0.0.1:9", status=1)
    run(service, "requests", "--url", "http://127.0.0.1:9", status=1)
    assert owners(service) == {_USER}


def test_a_folder_of_root_is_used_as_root(service: Path) -> None:
    data = service.with_name("of_root")
    run(data, "init")
    assert owners(data) == {0}
