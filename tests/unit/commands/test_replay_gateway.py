"""A gateway in a thread, and cassettes: the calls of one run in a folder, in order, recorded once and replayed."""

import json
import os
import shutil
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from penstock.commands.replay_gateway import ReplayGateway, open_cassette, save_cassette
from tests.cookbook.pages import FOLDER, read_page


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReplayGateway]:
    opened = ReplayGateway(tmp_path_factory.mktemp("gateway"))
    try:
        yield opened
    finally:
        opened.stop()


@contextmanager
def receiver() -> Iterator[tuple[str, list[Any], threading.Event]]:
    """A receiver of webhooks: its URL, the events that came, and whether one has."""
    events: list[Any] = []
    arrived = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            events.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(204)
            self.end_headers()
            arrived.set()

        def log_message(self, format: str, *args: Any) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://localhost:{server.server_port}/", events, arrived
        finally:
            server.shutdown()
            thread.join()


def call(served: ReplayGateway, key: str, path: str, body: Any) -> tuple[str, Any]:
    """The replay status and the JSON of a response."""
    request = urllib.request.Request(  # noqa: S310 - the gateway of the test
        f"{served.base_url}/{path}",
        data=json.dumps(body).encode(),
        headers={"authorization": f"Bearer {key}", "content-type": "application/json"},
    )
    with urllib.request.urlopen(request) as response:  # noqa: S310
        return response.headers["x-service-replay-status"], json.load(response)


def pipeline(served: ReplayGateway, key: str) -> list[str]:
    """A chat writes the prompt, an image is made, a video of it, and a webhook announces it. Returns the statuses."""
    asked = {"model": "atelier/echo", "messages": [{"role": "user", "content": "a lighthouse"}]}
    chat, completion = call(served, key, "chat/completions", asked)
    prompt = completion["choices"][0]["message"]["content"]
    drawn = {"model": "atelier/sketch", "prompt": prompt, "size": "64x64", "response_format": "b64_json"}
    image, _ = call(served, key, "images/generations", drawn)
    other, _ = call(served, key, "images/generations", {**drawn, "prompt": f"{prompt} at night"})
    with receiver() as (url, events, arrived):
        moved = {"model": "atelier/clip", "prompt": prompt, "seconds": 1, "size": "64x64", "webhook_url": url}
        video, _ = call(served, key, "videos", moved)
        assert arrived.wait(60)
    assert len(events) == 1
    return [chat, image, other, video]


def test_a_cassette_has_every_call_of_a_run_in_order(served: ReplayGateway, tmp_path: Path) -> None:
    folder = tmp_path / "pipeline"
    org, key = served.call(open_cassette(served.gateway, folder, "record"))
    assert pipeline(served, key) == ["recorded"] * 4
    (tmp_path / "pipeline").mkdir()
    (folder / "01-chat-0.txt").write_text("of an earlier run")
    (folder / "07-speech-0.mp3").write_text("of an earlier run")
    (folder / "notes.md").write_text("of its owner")
    served.call(save_cassette(served.gateway, org, folder, numbered=True))
    names = sorted(path.name for path in folder.iterdir())
    assert names == [
        "01-chat-0.txt", "01-chat.json", "02-image-0.png", "02-image.json", "03-image-0.png", "03-image.json",
        "04-video-0.mp4", "04-video.json", "05-webhook.json", "notes.md",
    ]  # fmt: skip
    assert json.loads((folder / "05-webhook.json").read_text())["event"]
    _, key = served.call(open_cassette(served.gateway, folder, "replay-or-error"))
    assert pipeline(served, key) == ["replayed"] * 4


NODE_PIPELINE = """
import { createServer } from "node:http";
import { once } from "node:events";
import { cassette } from "./penstock.mjs";

const gateway = await cassette(process.argv[2]);
const statuses = [];
async function call(path, body) {
  const headers = { authorization: `Bearer ${gateway.apiKey}`, "content-type": "application/json" };
  const reply = await fetch(`${gateway.baseURL}/${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  statuses.push(reply.headers.get("x-service-replay-status"));
  return reply.json();
}
const receiver = createServer((request, response) => response.writeHead(204).end());
receiver.listen(0, "127.0.0.1");
await once(receiver, "listening");
const announced = once(receiver, "request");
const messages = [{ role: "user", content: "a lighthouse" }];
const chat = await call("chat/completions", { model: "atelier/echo", messages });
const prompt = chat.choices[0].message.content;
await call("images/generations", { model: "atelier/sketch", prompt, size: "64x64", response_format: "b64_json" });
const webhook_url = `http://localhost:${receiver.address().port}/`;
await call("videos", { model: "atelier/clip", prompt, seconds: 1, size: "64x64", webhook_url });
await announced;
receiver.close();
receiver.closeAllConnections();
await gateway.close();
console.log(statuses.join(" "));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_a_program_of_node_replays_what_python_recorded(served: ReplayGateway, tmp_path: Path) -> None:
    """With the helper of the page on vitest."""
    folder = tmp_path / "pipeline"
    org, key = served.call(open_cassette(served.gateway, folder, "record"))
    assert pipeline(served, key) == ["recorded"] * 4
    served.call(save_cassette(served.gateway, org, folder, numbered=True))
    (tmp_path / "penstock.mjs").write_text(read_page(FOLDER / "vitest.md").files["penstock.mjs"])
    (tmp_path / "pipeline.mjs").write_text(NODE_PIPELINE)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["node", "pipeline.mjs", str(folder)],
        cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert done.stdout.split() == ["replayed"] * 3


def test_an_unknown_call_says_how_to_record_it(served: ReplayGateway, tmp_path: Path) -> None:
    _, key = served.call(open_cassette(served.gateway, tmp_path / "none", "replay-or-error"))
    with pytest.raises(urllib.error.HTTPError) as caught:
        call(served, key, "chat/completions", {"model": "atelier/echo", "messages": [{"role": "user", "content": "x"}]})
    message = json.load(caught.value)["error"]["message"]
    assert "penstock recordings serve --record" in message
    assert "pytest --penstock-record" in message
