"""`penstock serve` and `penstock worker`: refusals, what they print, how they stop."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import psutil
import pytest
from structlog.testing import capture_logs

from penstock.app.first_start import Welcome
from penstock.app.opening import lock_data_folder
from penstock.commands import serve
from penstock.models.catalog import Catalog
from penstock.providers import discover
from penstock.settings import Settings
from penstock.values import OrgId
from tests import postgres
from tests.command_line import penstock
from tests.ports import unused_port
from tests.stories.processes import until


@contextmanager
def running(
    *words: str, start: Sequence[str] = ("-m", "penstock"), **environment: str
) -> Iterator["subprocess.Popen[str]"]:
    """Start a process that is ended with the test."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    command = [sys.executable, *start, *words]
    with subprocess.Popen(command, env=clean | environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


@pytest.fixture(scope="module")
def postgres_url() -> Iterator[str]:
    """A Postgres with fsync, because a worker refuses one without."""
    with postgres.server(postgres.COMMON) as address:
        yield address


def first_line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline()


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])  # noqa: S104
def test_listening_on_other_addresses_needs_tls(tmp_path: Path, host: str) -> None:
    ended = penstock("serve", "--host", host, "--data", tmp_path)
    assert ended.status == 1
    assert f"refusing to listen on {host} without TLS" in ended.err
    with capture_logs() as logs:
        serve._check_exposure(Settings(host=host, behind_tls=True))
        assert logs == []
        serve._check_exposure(Settings(host=host, allow_plain_http=True))
        assert [line["log_level"] for line in logs] == ["warning"]


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_listening_on_this_machine_needs_no_tls(host: str) -> None:
    serve._check_exposure(Settings(host=host))


def test_a_data_folder_has_one_gateway(tmp_path: Path) -> None:
    with lock_data_folder(tmp_path):
        ended = penstock("serve", "--port", str(unused_port()), "--data", tmp_path)
    assert (ended.status, ended.err) == (1, f"penstock: another gateway is running on the data folder {tmp_path}\n")


# Each takes time to import, or decodes what strangers send, which only child processes may.
NOT_FOR_A_START = {
    "PIL", "av", "markdown_it", "numpy", "obstore", "opentelemetry", "procrastinate", "prometheus_client", "psycopg",
    "pydantic", "pygments", "rich", "tomllib", "xml",
    "penstock.imaging.convert", "penstock.commands.gateway_client", "penstock.jobs.cluster", "penstock.supervisor",
    "penstock.web.markdown",
}  # fmt: skip
WITH_IMPORTS = (
    "import atexit, sys; from penstock.cli import main; "
    "atexit.register(lambda: print('imported:', *sys.modules)); sys.argv[0] = 'penstock'; main()"
)


def test_serve_prints_its_url_imports_little_serves_and_exits_with_0(tmp_path: Path) -> None:
    port = unused_port()
    with running("serve", "--port", str(port), "--data", str(tmp_path), start=("-c", WITH_IMPORTS)) as process:
        assert first_line(process) == f"Penstock listens on http://127.0.0.1:{port}\n"
        with urlopen(f"http://127.0.0.1:{port}/readyz", timeout=10) as response:
            assert response.status == 200
        process.send_signal(signal.SIGTERM)
        assert process.stdout is not None
        printed, _, imported = process.stdout.read().partition("imported: ")
        assert process.wait(timeout=30) == 0
    assert "Your first API key, which is shown only once:" in printed
    assert "/compat/v1/images/generations" in printed
    assert "penstock.app.build" in imported.split()
    assert NOT_FOR_A_START & set(imported.split()) == set()


@pytest.mark.parametrize("key", ["pk_1_secret", None])
def test_the_first_key_is_shown_once(key: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    serve._print_welcome(Settings(port=8123), Welcome(OrgId("org_1"), key), None)
    printed = capsys.readouterr().out
    assert "http://127.0.0.1:8123" in printed
    assert ("pk_1_secret" in printed) is (key is not None)


def test_the_example_names_a_model_that_can_be_used() -> None:
    def example(environ: dict[str, str], *disabled: str) -> str | None:
        return serve._example_model(Catalog(discover(), Settings(disabled_providers=disabled), environ))

    assert example({}) == "atelier/sketch"
    assert example({"OPENAI_API_KEY": "sk-1"}) == "atelier/sketch"
    assert (example({"OPENAI_API_KEY": "sk-1"}, "atelier") or "").startswith("gpt-image")
    assert example({}, "atelier") is None


def test_several_processes_serve_one_port(tmp_path: Path, fresh_database: str) -> None:
    """One of them is killed; the others serve on, another takes its place, and nothing that was counted is lost."""
    port = unused_port()
    url = f"http://127.0.0.1:{port}"
    words = ("serve", "--processes", "2", "--port", str(port), "--data", str(tmp_path))
    with running(*words, PENSTOCK_DATABASE=fresh_database) as process:
        assert first_line(process) == f"Penstock listens on {url}\n"
        assert process.stdout is not None
        key = next(line.strip() for line in process.stdout if line.startswith("    pk_"))

        def get(path: str) -> str:
            request = Request(url + path, headers={"authorization": f"Bearer {key}"})  # noqa: S310
            with urlopen(request, timeout=10) as response:  # noqa: S310
                return str(response.read().decode())

        def counted() -> str:
            return next(line.rpartition(" ")[2] for line in get("/metrics").splitlines() if "/v1/balance" in line)

        supervisor = psutil.Process(process.pid)
        until(lambda: len(supervisor.children()) == 2)
        children = supervisor.children()
        for _ in range(10):
            get("/v1/balance")
        until(lambda: counted() == "10.0")
        children[0].kill()
        children[0].wait(30)
        for _ in range(10):
            get("/v1/balance")
        until(lambda: len(supervisor.children()) == 2)
        until(lambda: counted() == "20.0")
        assert "ready" in get("/readyz")
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
        assert not any(child.is_running() for child in children)


def test_several_processes_on_sqlite_are_refused(tmp_path: Path) -> None:
    ended = penstock("serve", "--processes", "2", "--data", tmp_path)
    assert ended.status == 1
    assert "processes = 2 needs Postgres" in ended.err


def test_a_worker_needs_a_postgres_database(tmp_path: Path) -> None:
    ended = penstock("worker", "--data", tmp_path)
    assert ended.status == 1
    assert "PENSTOCK_DATABASE" in ended.err


def test_a_worker_runs_until_a_signal(tmp_path: Path, fresh_database: str) -> None:
    with running("worker", "--data", str(tmp_path), PENSTOCK_DATABASE=fresh_database) as process:
        assert first_line(process) == "Penstock worker is running\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0


def test_a_worker_with_a_port_serves_its_health_and_its_metrics_and_nothing_else(
    tmp_path: Path, fresh_database: str
) -> None:
    port = unused_port()
    url = f"http://127.0.0.1:{port}"
    environment = {"PENSTOCK_DATABASE": fresh_database, "PENSTOCK_DATA": str(tmp_path)}
    assert penstock("init", **environment).status == 0
    key = penstock("keys", "create", "--scope", "operator", **environment).out.split()[-1]

    def get(path: str, **headers: str) -> tuple[int, str]:
        try:
            with urlopen(Request(url + path, headers=headers), timeout=10) as response:  # noqa: S310
                return response.status, response.read().decode()
        except HTTPError as refused:
            with refused:
                return refused.code, refused.read().decode()

    with running("worker", "--port", str(port), **environment) as process:
        assert first_line(process) == "Penstock worker is running\n"
        assert [get("/healthz")[0], get("/readyz")[0], get("/metrics")[0]] == [200, 200, 401]
        status, text = get("/metrics", authorization=f"Bearer {key}")
        assert status == 200
        assert "penstock_jobs_running 0.0" in text
        assert get("/compat/v1/models", authorization=f"Bearer {key}")[0] == 404
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
