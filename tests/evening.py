"""Run every command of docs/evening.md, with a Postgres, an S3 server, a collector and a webhook receiver of its own.

`make test-evening` runs this. It needs nginx, Prometheus, curl and openssl, and says which of them is missing. Ports of
the page are replaced by free ones. At the end it is checked that statuses, videos, webhooks, the trace and the queries
of the dashboard are as the page says, and that no process logged an error or the key.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import urlopen

import psycopg

from tests import grafana, postgres, s3_server
from tests.otlp_receiver import OtlpReceiver, ReceivedSpan, otlp_receiver
from tests.ports import unused_port
from tests.snippets import ROOT, blocks
from tests.stories.processes import until

PAGE = ROOT / "docs" / "evening.md"
PROGRAMS = ("bash", "curl", "nginx", "openssl", "prometheus", "promtool")
PORTS = ("8443", "8081", "8082", "9464", "9465", "9090")
_SKIPPED = 77  # the exit status of a test that could not run, by the convention of automake and others
PROCESSES = ("gateway-1", "gateway-2", "worker-1", "worker-2")
VIDEOS = 12
CALLERS = 3
SECONDS = 900


def main() -> int:
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        say(f"skipped: not installed: {', '.join(missing)}")
        return _SKIPPED
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that everything that was started ends
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-evening-")))
        collector = stack.enter_context(otlp_receiver())
        receiver = stack.enter_context(webhook_receiver())
        work = folder / "work"
        work.mkdir()
        shell = stack.enter_context(
            started_shell(work, environment(stack, folder) | collector.environ | {"RECEIVER": receiver.url})
        )
        problems = run_page(shell)
        problems += webhook_problems(receiver)
        problems += trace_problems(collector, shell.run('echo "$TRACE $CALLER_SPAN"').split())
        problems += log_problems(work, shell.run('echo "$KEY"').strip())
    for problem in problems:
        say(f"PROBLEM: {problem}")
    say("the evening failed" if problems else "the evening passed")
    return 1 if problems else 0


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


# ------------------------------------------------------------------------------------------------------- what is needed


def environment(stack: ExitStack, folder: Path) -> dict[str, str]:
    """The variables that the page asks for, with servers that end with `stack`."""
    server = stack.enter_context(postgres.server(postgres.COMMON))
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        for name in ("penstock", "restored"):
            connection.execute(f"CREATE DATABASE {name}".encode())
    (folder / "s3").mkdir()
    storage = stack.enter_context(s3_server.run_s3_server(folder / "s3"))
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PENSTOCK_", "PYTHON"))}
    programs = [
        Path(sys.base_prefix) / "bin",  # the Python that runs this, and not that of .venv
        postgres.installed_folder() / "bin",
        Path(s3_server.find_rclone()).parent,
    ]
    return inherited | {
        "PATH": ":".join([*map(str, programs), os.environ["PATH"]]),
        "CLONE": str(ROOT),
        "WHEEL": str(built_wheel(folder / "dist")),
        "PENSTOCK_DATABASE": f"{server}/penstock",
        "RESTORED": f"{server}/restored",
        "PENSTOCK_MEDIA": f"s3://{s3_server.BUCKET}/media",
        "AWS_ACCESS_KEY_ID": s3_server.KEY_ID,
        "AWS_SECRET_ACCESS_KEY": s3_server.SECRET,
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT": storage.endpoint,
        "AWS_ALLOW_HTTP": "true",
    }


def built_wheel(folder: Path) -> Path:
    uv = Path(sys.executable).with_name("uv")
    options = ["--quiet", "--no-build-isolation", "--python", sys.executable, "--out-dir", str(folder)]
    subprocess.run([uv, "build", *options, str(ROOT)], check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


@dataclass(slots=True)
class Receiver:
    """Takes webhooks, and counts the events of each video."""

    url: str
    events: Counter[tuple[str, str]] = field(default_factory=Counter)
    untraced: int = 0


@contextmanager
def webhook_receiver() -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            event = json.loads(self.rfile.read(int(self.headers["content-length"])))
            receiver.events[event["type"], event["data"]["id"]] += 1
            receiver.untraced += "traceparent" not in self.headers
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver = Receiver(f"http://127.0.0.1:{server.server_port}/")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()


# ------------------------------------------------------------------------------------------------------------- the page


@dataclass(slots=True)
class Shell:
    """A shell that keeps its variables and background processes from one block to the next."""

    process: "subprocess.Popen[str]"
    ports: Mapping[str, str]

    def run(self, code: str) -> str:
        """Run some commands and return what they printed. Raises RuntimeError if one fails."""
        for port, free in self.ports.items():
            code = re.sub(rf"\b{port}\b", free, code)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{code}\necho; echo {END_OF_BLOCK}\n")
        self.process.stdin.flush()
        printed: list[str] = []
        for line in self.process.stdout:
            if line.strip() == END_OF_BLOCK:
                return "".join(printed)
            printed.append(line)
        raise RuntimeError(f"a command of the page failed; it printed:\n{''.join(printed)}")


END_OF_BLOCK = "--- end of the block"


@contextmanager
def started_shell(folder: Path, variables: Mapping[str, str]) -> Iterator[Shell]:
    """A shell in a session of its own, so that whatever it has started ends with it."""
    process = subprocess.Popen(
        ["bash", "-euo", "pipefail"],
        cwd=folder,
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    watch = threading.Timer(SECONDS, os.killpg, (process.pid, signal.SIGKILL))
    watch.start()
    try:
        yield Shell(process, {port: str(unused_port()) for port in PORTS})
    finally:
        watch.cancel()
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def run_page(shell: Shell) -> list[str]:
    problems: list[str] = []
    for block in blocks(PAGE):
        if block.language != "sh" or block.reason is not None:
            continue
        say(block.code)
        printed = shell.run(block.code)
        say(re.sub(r"^", "    ", printed, flags=re.MULTILINE).rstrip(" "))
        if "cat statuses" in block.code:
            problems += status_problems(printed)
        if '"status"' in block.code:
            problems += [] if printed.split() == [str(VIDEOS), '"status":"completed"'] else [f"videos: {printed}"]
        if "promtool" in block.code:
            problems += query_problems(f"http://127.0.0.1:{shell.ports['9090']}")
    return problems


# ----------------------------------------------------------------------------------------------------------- the checks


def status_problems(printed: str) -> list[str]:
    """Images succeed, are refused by a gateway that stops, or were on the gateway that was killed."""
    counts = {status: int(count) for count, status in re.findall(r"^ *(\d+) (\d+)$", printed, re.MULTILINE)}
    problems = [] if "200" in counts else ["no image was made"]
    problems += [f"{count} images ended with {status}" for status, count in counts.items() if status not in STATUSES]
    if counts.get("502", 0) > CALLERS:
        problems.append(f"more than {CALLERS} calls were lost with one gateway: {counts['502']}")
    return problems


STATUSES = {"200", "502", "503"}


def webhook_problems(receiver: Receiver) -> list[str]:
    until(lambda: len(receiver.events) >= VIDEOS)
    kinds = Counter(kind for kind, _ in receiver.events)
    problems = [] if kinds == {"video.completed": VIDEOS} else [f"webhooks: {kinds}"]
    if receiver.untraced:
        problems.append(f"{receiver.untraced} webhooks had no traceparent")
    return problems


def trace_problems(collector: OtlpReceiver, ids: Sequence[str]) -> list[str]:
    """Every video is in the caller's trace, from its call to its webhook; print the spans of one."""
    trace_id, caller_span = ids
    spans = [span for span in collector.spans if span.trace_id == trace_id]
    calls = [span for span in spans if span.parent_id == caller_span]
    if len(calls) != VIDEOS:
        return [f"{len(calls)} spans under the caller's span, of {VIDEOS}"]
    print_tree(calls[0], spans)
    problems = []
    for call in calls:
        below = {span.name for span in spans if span.parent_id == call.span_id}
        missing = {"validate", "accept", "commit", "deliver webhook", "generate_content clip"} - below
        if missing:
            problems.append(f"a video's trace lacks {', '.join(sorted(missing))}")
    return problems


def print_tree(span: ReceivedSpan, spans: Sequence[ReceivedSpan], depth: int = 0) -> None:
    say("    " + "  " * depth + f"{span.name}  ({span.service})")
    below = [other for other in spans if other.parent_id == span.span_id]
    polls = Counter(other.service for other in below if other.name == "poll")
    for other in below:
        if other.name != "poll":
            print_tree(other, spans, depth + 1)
    for service, count in polls.items():
        say("    " + "  " * (depth + 1) + f"poll × {count}  ({service})")


def query_problems(prometheus: str) -> list[str]:
    """Every query of the dashboard is answered, and with values where there is something to tell."""
    problems = []
    for title, query, _ in grafana.queries():
        expression = query.replace("$__rate_interval", "5m").replace("$job", ".*")
        with urlopen(f"{prometheus}/api/v1/query?{urlencode({'query': expression})}") as response:  # noqa: S310
            found = json.load(response)["data"]["result"]
        say(f"    {title}: {len(found)} values")
        if not found and title not in MAY_BE_EMPTY:
            problems.append(f"no values for {title}: {expression}")
    return problems


MAY_BE_EMPTY = {"Failed attempts by kind"}  # unless one fails


def log_problems(work: Path, key: str) -> Iterator[str]:
    for name in PROCESSES:
        text = (work / f"{name}.log").read_text()
        if key in text:
            yield f"{name} has logged the key"
        yield from (f"{name}: {line}" for line in text.splitlines() if re.search(r'"level": ?"error"', line))


if __name__ == "__main__":
    sys.exit(main())
