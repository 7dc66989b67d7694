"""compose.yaml, without a container engine: each service's own environment and command, with only hosts and ports of
this machine in place of those of its network.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

import psycopg
import pytest

from tests.deploy_files import compose_services, image_environment
from tests.ports import unused_port
from tests.s3_server import find_rclone, wait_until_ready
from tests.stories.processes import ROOT, Serving, until

SERVICES = compose_services()
DOTENV = {name: name[0] * 40 for name in ("PENSTOCK_SECRET", "POSTGRES_PASSWORD", "S3_KEY")}
IMAGE = {"model": "atelier/sketch", "prompt": "a lighthouse at dusk"}
VIDEO = {"model": "atelier/clip", "prompt": "a lighthouse at dusk", "seconds": 1}


def filled(text: str) -> str:
    """A text of compose.yaml with the values of .env."""
    return re.sub(r"\$\{(\w+):\?[^}]*\}", lambda found: DOTENV[found[1]], text).replace("$$", "$")


@contextmanager
def s3_service(folder: Path) -> Iterator[int]:
    """Run the command of the service `s3`; yield its port."""
    port = unused_port()
    service = SERVICES["s3"]
    shell, option, script = service["entrypoint"]
    script = re.sub(r"(?<=\s)/media", str(folder), filled(script))
    script = script.replace("--addr :8080", f"--addr 127.0.0.1:{port} --config /dev/null --log-level ERROR")
    path = f"{Path(find_rclone()).parent}:{os.environ['PATH']}"
    environment = {"PATH": path, **{name: filled(value) for name, value in service["environment"].items()}}
    with subprocess.Popen([shell, option, script], env=environment, stderr=subprocess.PIPE) as process:
        try:
            wait_until_ready(port, process)
            yield port
        finally:
            process.kill()


def database_for(user: str, url: str) -> str:
    """Give a database to the user of compose.yaml; return its host, port and name."""
    with psycopg.connect(url, autocommit=True) as connection:
        name = connection.info.dbname
        if connection.execute("SELECT FROM pg_roles WHERE rolname = %s", [user]).fetchone() is None:
            connection.execute(f"CREATE ROLE {user} LOGIN")
        connection.execute(f"ALTER DATABASE {name} OWNER TO {user}; ALTER SCHEMA public OWNER TO {user}")
        return f"{connection.info.host}:{connection.info.port}/{name}"


@dataclass(slots=True)
class Stack:
    """Where the services run, and their logs."""

    folder: Path
    database: str
    s3_port: int
    ports: Mapping[str, int]

    def environment(self, name: str) -> dict[str, str]:
        given = {
            variable: filled(value)
            .replace("@postgres/penstock", f"@{self.database}")
            .replace("http://s3:8080", f"http://127.0.0.1:{self.s3_port}")
            .replace("http://127.0.0.1:8080", f"http://127.0.0.1:{self.ports['gateway-1']}")  # stands for the proxy
            for variable, value in SERVICES[name]["environment"].items()
            if value is not None
        }
        here = {"PENSTOCK_HOST": "127.0.0.1", "PENSTOCK_PORT": str(self.ports[name])}
        here |= {"PENSTOCK_DATA": str(self.folder / name), "PATH": os.environ["PATH"]}
        return image_environment() | given | here

    @contextmanager
    def running(self, name: str) -> Iterator["subprocess.Popen[bytes]"]:
        """Run a service until the end; its log is in a file with its name."""
        words = [word.replace("8080", str(self.ports[name])) for word in SERVICES[name].get("command", ["serve"])]
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "penstock", *words], env=self.environment(name), stdout=log, stderr=log
            )
        try:
            yield process
        finally:
            process.terminate()
            assert process.wait(60) == 0

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text()

    def is_healthy(self, name: str, process: "subprocess.Popen[bytes]") -> bool:
        """What the health check of compose.yaml says, which Docker runs inside the container."""
        assert process.poll() is None, self.log(name)
        kind, _, *words = SERVICES[name]["healthcheck"]["test"]
        assert kind == "CMD"
        port = str(self.ports[name])
        checked = subprocess.run(
            [sys.executable, *(word.replace("8080", port) for word in words)], check=False, stderr=subprocess.DEVNULL
        )
        return checked.returncode == 0


def part(url: str, base: str) -> tuple[int, bytes]:
    """The status and the first bytes of a file, asked for as a range, at another gateway than the URL's."""
    asked = Request(base + "/m/" + url.partition("/m/")[2], headers={"range": "bytes=0-11"})  # noqa: S310
    with urlopen(asked) as response:  # noqa: S310
        return response.status, response.read()


@pytest.fixture
def stack(fresh_database: str, tmp_path: Path) -> Iterator[Stack]:
    (tmp_path / "s3").mkdir()
    with s3_service(tmp_path / "s3") as s3_port:
        ports = {name: unused_port() for name, service in SERVICES.items() if "build" in service}
        assert set(ports) == {"gateway-1", "gateway-2", "worker"}
        yield Stack(tmp_path, database_for("penstock", fresh_database), s3_port, ports)


def test_the_services_of_compose_start_and_their_files_can_be_fetched(stack: Stack) -> None:
    with ExitStack() as running:
        processes = {name: running.enter_context(stack.running(name)) for name in stack.ports}
        for name, process in processes.items():
            until(lambda name=name, process=process: stack.is_healthy(name, process))  # type: ignore[misc]
        (key,) = re.findall(r"^    (pk_\S+)$", stack.log("gateway-1") + stack.log("gateway-2"), re.MULTILINE)
        bases = [f"http://127.0.0.1:{stack.ports[name]}" for name in ("gateway-1", "gateway-2")]
        gateway = Serving(processes["gateway-2"], bases[1], "", key)  # type: ignore[arg-type]
        image = gateway.call("POST", "/compat/v1/images/generations", IMAGE).json["data"][0]["url"]
        video = gateway.call("POST", "/compat/v1/videos", VIDEO).json["id"]
        until(lambda: gateway.call("GET", f"/compat/v1/videos/{video}").json["status"] == "completed")
        clip = gateway.call("GET", f"/compat/v1/videos/{video}").json["output"]["url"]
        for url, beginning in ((image, b"\x89PNG"), (clip, b"\0\0\0")):
            assert url.startswith(f"{bases[0]}/m/"), "a URL that callers can reach"
            for base in bases:
                status, content = part(url, base)
                assert (status, content[: len(beginning)], len(content)) == (206, beginning, 12)


def test_the_health_check_fails_where_nothing_answers(stack: Stack) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as nobody:
        assert not stack.is_healthy("worker", nobody)
        nobody.communicate(b"\n")
    with pytest.raises(URLError):
        urlopen(f"http://127.0.0.1:{stack.ports['worker']}/readyz")


def test_the_values_that_must_be_set_are_those_that_the_first_lines_write() -> None:
    text = (ROOT / "compose.yaml").read_text()
    (written,) = re.findall(r"printf '(.*?)'", text)
    assert {line.partition("=")[0] for line in written.split(r"\n") if line} == set(DOTENV)
    assert set(re.findall(r"\$\{(\w+):\?", text)) == set(DOTENV)
