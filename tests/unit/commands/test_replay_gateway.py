"""A gateway in a thread, and cassettes: the calls of one run in a folder, in order, recorded once and replayed."""

import json
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from penstock.commands.replay_gateway import ReplayGateway, open_cassette, save_cassette


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


def test_an_unknown_call_says_how_to_record_it(served: ReplayGateway, tmp_path: Path) -> None:
    _, key = served.call(open_cassette(served.gateway, tmp_path / "none", "replay-or-error"))
    with pytest.raises(urllib.error.HTTPError) as caught:
        call(served, key, "chat/completions", {"model": "atelier/echo", "messages": [{"role": "user", "content": "x"}]})
    message = json.load(caught.value)["error"]["message"]
    assert "penstock recordings serve --record" in message
    assert "pytest --penstock-record" in message
