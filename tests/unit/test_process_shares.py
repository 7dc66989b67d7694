"""Processes that serve one port share what limits the machine."""

from pathlib import Path

import pytest

from penstock.process_shares import share
from penstock.settings.loading import as_configured, load
from penstock.typed_config import Misconfigured


def test_several_processes_need_postgres(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="processes = 4 needs Postgres"):
        load({"data": tmp_path, "processes": "4"}, {})
    assert share(load({"data": tmp_path, "processes": "0"}, {}), cores=8).processes == 1


def test_several_processes_share_what_limits_the_machine(tmp_path: Path) -> None:
    given = load({"data": tmp_path, "processes": "0", "database": "postgresql://db.test/x"}, {})
    shared = share(given, cores=8)
    assert shared.processes == 8
    assert (shared.image_workers, shared.concurrent_jobs, shared.database_connections) == (1, 1250, 6)
    assert (shared.connections_per_address, shared.receiving_bytes) == (200, given.form_bytes)
    assert share(given, cores=1).database_connections == given.database_connections
    assert as_configured(shared) == as_configured(given), "an operator sees what was configured"
