"""Recorded calls made again at providers that have changed meanwhile, or not."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.client.calls import Call
from penstock.client.connection import Connection
from penstock.commands.drift_check import check_all
from penstock.commands.drift_report import CheckedCall
from penstock.commands.replay_gateway import ReplayGateway, open_cassette, save_cassette
from penstock.recordings.drift import Limits
from tests.command_line import penstock
from tests.fake_providers import faults
from tests.fake_providers.scripted import (
    KEY,
    KEY_ENV,
    ScriptedProvider,
    noise,
    scripted_provider_in_thread,
)
from tests.fake_providers.server import Act, FakeCall

IMAGE = {"model": "image-1", "prompt": "a pear", "size": "64x64"}
CHAT = {"model": "lab/chat", "messages": [{"role": "user", "content": "hello"}]}
VIDEO = {"model": "video-1", "prompt": "a train", "seconds": 4}
SPEECH = {"model": "lab/voice", "input": "good morning", "voice": "alloy"}


class Recorded(msgspec.Struct):
    """A folder with recorded calls, and the provider that they were made at."""

    folder: Path
    config: Path
    lab: ScriptedProvider

    def check(self, **limits: float) -> dict[str, CheckedCall]:
        checked = check_all([self.folder], Limits(**limits), max_usd="5", at_once=2, config=self.config)
        return {Path(call.name).stem: call for call in checked}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    """An image, a chat, a stream, a video, and speech."""
    place = tmp_path_factory.mktemp("drift")
    with scripted_provider_in_thread() as lab, pytest.MonkeyPatch.context() as patch:
        patch.setenv(KEY_ENV, KEY)
        found = Recorded(place / "calls", place / "penstock.toml", lab)
        found.config.write_text(configuration(lab, image_usd="0.04"))
        served = ReplayGateway(place / "data", found.config)
        try:
            owner, key = served.call(open_cassette(served.gateway, found.folder, "record"))
            connection = Connection(served.base_url, key)
            send(connection, "/images/generations", IMAGE)
            send(connection, "/chat/completions", CHAT)
            send(connection, "/chat/completions", {**CHAT, "stream": True})
            send(connection, "/audio/speech", SPEECH)
            video = connection.send(Call("POST", "/videos", VIDEO))
            while connection.send(Call("GET", f"/videos/{video.body['id']}")).body["status"] != "completed":
                pass
            served.call(save_cassette(served.gateway, owner, found.folder, numbered=True))
        finally:
            served.stop()
        yield found


@pytest.fixture(autouse=True)
def usual_again(recorded: Recorded) -> Iterator[None]:
    yield
    for endpoint in (recorded.lab.images, recorded.lab.chats):
        endpoint.always(faults.ok)
    recorded.config.write_text(configuration(recorded.lab, image_usd="0.04"))


def configuration(lab: ScriptedProvider, image_usd: str) -> str:
    """The provider in penstock.toml."""
    table = lab.settings()
    models = [
        {**model, "price": {**model["price"], "usd": image_usd}} if model["task"] == "image" else model
        for model in table.pop("models")
    ]
    lines = ["[providers.lab]", *(f"{name} = {literal(value)}" for name, value in table.items())]
    for model in models:
        lines += ["[[providers.lab.models]]", *(f"{name} = {literal(value)}" for name, value in model.items())]
    return "\n".join([*lines, ""])


def literal(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {literal(inner)}" for name, inner in value.items()) + "}"
    return msgspec.json.encode(value).decode()


def send(connection: Connection, path: str, body: dict[str, Any]) -> None:
    for _ in connection.stream(Call("POST", path, body)):
        pass


def another_picture(side: int) -> Act:
    return faults.altered(data=[{"b64_json": base64.b64encode(noise(side)).decode()}])


async def with_a_new_field(call: FakeCall) -> None:
    """A chat that is not streamed says one thing more."""
    is_stream = call.exchange.request.fields.get("stream")
    await (faults.ok if is_stream else faults.altered(service_tier="flex"))(call)


def texts(call: CheckedCall) -> list[str]:
    return [f"{change.kind}: {change.text}" for change in call.changes]


NAMES = ["01-image", "02-chat", "03-chat", "04-speech", "05-video"]


def test_nothing_has_changed_at_a_provider_that_stays_as_it_is(recorded: Recorded) -> None:
    before = {path.name: path.read_bytes() for path in recorded.folder.iterdir()}
    checked = recorded.check(latency_percent=100_000)
    assert sorted(checked) == NAMES
    assert {name: texts(call) for name, call in checked.items()} == {name: [] for name in NAMES}
    assert [picture.distance for picture in checked["01-image"].pictures] == [0.0]
    assert [picture.distance for picture in checked["05-video"].pictures] == [0.0]
    costs = {name: (call.before.cost, call.after and call.after.cost) for name, call in checked.items()}
    assert all(was == now is not None for was, now in costs.values()), costs
    assert {path.name: path.read_bytes() for path in recorded.folder.iterdir()} == before


def test_each_kind_of_drift_is_found(recorded: Recorded) -> None:
    recorded.lab.images.always(another_picture(128))
    recorded.lab.chats.always(with_a_new_field)
    recorded.config.write_text(configuration(recorded.lab, image_usd="0.06"))
    checked = recorded.check(latency_percent=100_000)
    shape, cost, picture = texts(checked["01-image"])
    assert shape == "shape: made image/png 128x128, was image/png 64x64"
    assert cost == "cost: costs $0.06, was $0.04 (+50%)"
    assert picture.startswith("picture: picture 1 looks different")
    assert texts(checked["02-chat"]) == ["shape: new: service_tier: text"]
    assert texts(checked["05-video"]) == []


def test_a_call_that_fails_now_is_a_change(recorded: Recorded) -> None:
    recorded.lab.images.always(faults.rejected)
    assert "Invalid value" in texts(recorded.check()["01-image"])[0]


def test_calls_with_input_files_are_left_out(recorded: Recorded, tmp_path: Path) -> None:
    for path in recorded.folder.glob("01-image*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    document = msgspec.json.decode((tmp_path / "01-image.json").read_bytes())
    document |= {"kind": "edit", "task": "edit"}
    document["request"]["image"] = [["image", "0" * 64]]
    (tmp_path / "01-image.json").write_bytes(msgspec.json.encode(document))
    (call,) = check_all([tmp_path], Limits(), max_usd="5", at_once=1, config=recorded.config)
    assert (call.verdict, "no input files" in call.skipped) == ("skipped", True)


def test_the_calls_cost_no_more_than_they_may(recorded: Recorded) -> None:
    charged = len(recorded.lab.invoice)
    image = recorded.folder / "01-image.json"
    (call,) = check_all([image], Limits(), max_usd="0.01", at_once=1, config=recorded.config)
    assert texts(call)[0].startswith("failed: ")
    assert len(recorded.lab.invoice) == charged


def test_the_command_prints_a_line_for_each_and_fails_on_the_kinds_that_it_is_told(
    recorded: Recorded, tmp_path: Path
) -> None:
    recorded.lab.images.always(another_picture(64))
    image = recorded.folder / "01-image.json"
    words = ("recordings", "check", image, "--config", recorded.config, "--report", tmp_path / "drift.html")
    environment = {KEY_ENV: KEY}
    ended = penstock(*words, **environment)
    assert (ended.status, ended.lines[0][1:3]) == (0, ["image-1", "drifted"])
    page = (tmp_path / "drift.html").read_text()
    assert page.count("data:image/webp;base64,") == 2
    assert penstock(*words, "--fail-on", "picture", **environment).status == 1
    wrong = penstock(*words, "--fail-on", "price", **environment)
    assert (wrong.status, "price" in wrong.err, "latency" in wrong.err) == (2, True, True)
