"""`penstock.Client` against a gateway: what it makes, what it saves, and that nothing is paid for twice."""

import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from PIL import Image

from penstock import Client, Generation, GenerationFailed, NotConnected, NotFinished, Refused
from tests import sounds
from tests.ports import unused_port
from tests.stories.processes import Serving
from tests.unit.client.conftest import Network

SMALL = "256x256"


def test_images_are_made_edited_enlarged_and_saved(client: Client, tmp_path: Path) -> None:
    made = client.image("a fox", model="atelier/sketch", size=SMALL, n=2, output_format="webp")
    assert (made.kind, made.status, made.size, made.cost) == ("image", "completed", SMALL, Decimal("0.002"))
    paths = client.save(made, tmp_path / "fox.webp")
    assert [path.name for path in paths] == ["fox-1.webp", "fox-2.webp"]
    edited = client.edit("at night", [paths[0], client.read(made.files[1])], model="atelier/retouch", size=SMALL)
    large = client.upscale(client.read(edited.files[0]), model="atelier/enlarge", scale_factor=2)
    assert large.size == "512x512"
    [path] = client.save(large, str(tmp_path / "large.png"))
    with Image.open(path) as image:
        assert image.size == (512, 512)


def test_a_video_is_waited_for_with_its_progress(client: Client, tmp_path: Path, short_pauses: list[float]) -> None:
    states: list[Generation] = []
    video = client.video(
        "a sunset", model="atelier/clip", seconds=1, size="320x180", metadata={"scene": "4"}, on_progress=states.append
    )
    assert (video.kind, video.executed_model, states[-1]) == ("video", "atelier/clip", video)
    assert video.body["metadata"]["scene"] == "4"
    assert set(short_pauses) <= {1.0}, "as often as the gateway asks for"
    [path] = client.save(video, tmp_path / "sunset.mp4")
    assert path.stat().st_size == video.files[0].size_bytes
    assert client.get(video.id).cost == video.cost


def test_a_video_begins_with_an_image(client: Client) -> None:
    image = client.image("a lake", model="atelier/sketch", size=SMALL)
    video = client.start_video("waves", model="atelier/clip", seconds=1, image=client.read(image.files[0]))
    assert client.wait(video).status == "completed"


def test_a_video_that_fails_says_why_and_one_that_takes_long_goes_on(client: Client) -> None:
    with pytest.raises(GenerationFailed) as failed:
        client.video("[fail]", model="atelier/clip", seconds=1)
    assert str(failed.value.generation.error_code) in str(failed.value)
    started = client.start_video("a long walk", model="atelier/clip", seconds=4)
    with pytest.raises(NotFinished) as late:
        client.wait(started, wait_seconds=0)
    assert late.value.generation.id == started.id
    client.cancel(started)


def test_images_and_speech_that_nobody_waits_for_are_retrieved_later(client: Client) -> None:
    image = client.wait(client.start_image("a fox", model="atelier/sketch", size=SMALL))
    sound = client.wait(client.start_speech("Good morning.", model="atelier/voice", response_format="wav"))
    assert [(each.kind, len(each.files)) for each in (image, sound)] == [("image", 1), ("sound", 1)]
    assert sounds.container_of(client.read(sound.files[0])) == "wav"


def test_a_text_is_spoken_into_a_file_or_while_it_is_made(client: Client, tmp_path: Path) -> None:
    spoken = client.speech("Hello.", model="atelier/voice", voice="nova", response_format="flac")
    assert (spoken.kind, spoken.cost) == ("sound", Decimal("0.000006"))
    [path] = client.save(spoken, tmp_path / "hello.flac")
    assert sounds.container_of(path.read_bytes()) == "flac"
    assert sounds.container_of(b"".join(client.stream_speech("Hello.", model="atelier/voice"))) == "mp3"


def test_prices_come_before_the_call(client: Client, tmp_path: Path) -> None:
    image = tmp_path / "image.png"
    Image.new("RGB", (64, 64)).save(image)
    assert client.price("image", "a fox", model="atelier/sketch", n=3).total == Decimal("0.003")
    assert client.price("edit", "at night", model="atelier/retouch", images=image).total == Decimal("0.001")
    assert client.price("upscale", model="atelier/enlarge", image=image, scale_factor=2).total > 0
    assert client.price("video", "a fox", model="atelier/clip", seconds=2).model == "atelier/clip"
    assert client.price("speech", "Hello.", model="atelier/voice").total == Decimal("0.000006")
    with pytest.raises(ValueError, match="must be image, edit"):
        client.price("picture", "a fox", model="atelier/sketch")  # type: ignore[arg-type]


def test_the_account_is_read(client: Client) -> None:
    balance = client.balance()
    assert (balance.billing_type, balance.available) == ("postpaid", None) or balance.available is not None
    assert "atelier/clip" in [model["id"] for model in client.models("text-to-video")]
    assert client.webhook_secret().startswith("whsec_")


def test_what_the_gateway_refuses_is_raised_at_once(client: Client, short_pauses: list[float]) -> None:
    with pytest.raises(Refused, match="MODEL_NOT_FOUND") as refused:
        client.image("a fox", model="atelier/nothing")
    assert (refused.value.status, refused.value.code, short_pauses) == (404, "MODEL_NOT_FOUND", [])
    assert refused.value.request_id.startswith("req_")
    with pytest.raises(Refused) as wrong:
        client.image("a fox", model="atelier/sketch", n=99)
    assert (wrong.value.code, wrong.value.param) == ("INVALID_REQUEST", "n")


def test_a_lost_response_is_asked_for_again_and_paid_once(served: Serving, network: Network) -> None:
    client = Client(network.url, served.key)
    calls: list[Callable[[], Generation]] = [
        lambda: client.image("a fox in a lossy place", model="atelier/sketch", size=SMALL, session_id="lossy"),
        lambda: client.speech("One, two, three.", model="atelier/voice", session_id="lossy"),
        lambda: client.start_video("a fox", model="atelier/clip", seconds=1, session_id="lossy"),
    ]
    for make in calls:
        before = len(served.call("GET", "/v1/requests?session_id=lossy").json["data"])
        network.losses = 2
        made = make()
        rows = served.call("GET", "/v1/requests?session_id=lossy").json["data"]
        assert (rows[0]["id"], len(rows)) == (made.id, before + 1)
    keys = [headers["idempotency-key"] for call, headers in network.calls if call.startswith("POST")]
    assert (len(keys), len(set(keys))) == (9, 3)


def test_polls_that_fail_do_not_end_a_wait(served: Serving, network: Network) -> None:
    client = Client(network.url, served.key, retries=0)
    started = client.start_video("a fox", model="atelier/clip", seconds=1, size="320x180")
    network.losses = 3
    assert client.wait(started).status == "completed"


def test_a_call_without_a_key_of_its_own_is_not_repeated(served: Serving, network: Network) -> None:
    network.losses = 1
    with pytest.raises(NotConnected):
        list(Client(network.url, served.key).stream_speech("Hello.", model="atelier/voice"))
    assert len(network.calls) == 1


def test_no_gateway_is_said_after_some_tries(short_pauses: list[float]) -> None:
    url = f"http://127.0.0.1:{unused_port()}"
    with pytest.raises(NotConnected, match=f"no gateway answers at {url}"):
        Client(url, "pk_1", retries=2).balance()
    assert len(short_pauses) == 2


def test_the_gateway_and_the_key_come_from_the_environment(served: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PENSTOCK_KEY", raising=False)
    with pytest.raises(ValueError, match="PENSTOCK_KEY"):
        Client(served.url)
    monkeypatch.setenv("PENSTOCK_URL", served.url)
    monkeypatch.setenv("PENSTOCK_KEY", served.key)
    assert Client().models()
    with pytest.raises(ValueError, match="http://"):
        Client("gateway.test", "pk_1")


def test_to_import_penstock_imports_nothing_of_it() -> None:
    """The names that it offers are imported when a program uses them, and the standard library is enough for them."""
    code = "import sys, penstock; print([m for m in sys.modules if m.startswith('penstock.')])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
    assert not hasattr(__import__("penstock"), "nothing")
