"""OpenAI's own client against the scripted provider: normal use, and each fault."""

import base64
import io
from collections.abc import Iterator
from decimal import Decimal
from urllib.request import urlopen

import openai
import pytest
from PIL import Image

from tests.fake_providers import faults
from tests.fake_providers.scripted import KEY, ScriptedProvider, mp4, png, scripted_provider_in_thread
from tests.fake_providers.server import Act

pytestmark = pytest.mark.filterwarnings("ignore:The Sora API:DeprecationWarning")


@pytest.fixture
def lab() -> Iterator[ScriptedProvider]:
    with scripted_provider_in_thread() as lab:
        yield lab


@pytest.fixture
def client(lab: ScriptedProvider) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=lab.base_url, api_key=KEY, max_retries=0, timeout=5) as client:
        yield client


def test_images(lab: ScriptedProvider, client: openai.OpenAI) -> None:
    made = client.images.generate(model="easel-1", prompt="a pear", n=2, size="512x512")
    assert made.data is not None
    images = [Image.open(io.BytesIO(base64.b64decode(item.b64_json or ""))) for item in made.data]
    assert [image.size for image in images] == [(512, 512), (512, 512)]
    assert [(line.kind, line.usd, line.prompt) for line in lab.invoice] == [("image", Decimal("0.08"), "a pear")]


def test_images_by_address(lab: ScriptedProvider, client: openai.OpenAI) -> None:
    lab.returns_urls = True
    made = client.images.generate(model="easel-1", prompt="a pear")
    assert made.data is not None
    address = made.data[0].url or ""
    assert address.startswith(f"http://127.0.0.1:{lab.port}/files/")
    with urlopen(address) as response:  # noqa: S310
        assert response.read() == png(1024, 1024)


def test_edits(lab: ScriptedProvider, client: openai.OpenAI) -> None:
    image, mask = png(64, 64), png(64, 64, "white")
    client.images.edit(model="easel-1", prompt="add a hat", image=[("a.png", image)], mask=("m.png", mask))
    received = lab.edits.received[0].fields
    assert (received["image"], received["mask"], received["prompt"]) == ([image], mask, "add a hat")
    with pytest.raises(openai.BadRequestError):
        client.images.edit(model="easel-1", prompt="add a hat", image=[])


def test_video(lab: ScriptedProvider, client: openai.OpenAI) -> None:
    video = client.videos.create(model="sora-2", prompt="a train", seconds="8", size="1280x720")
    assert (video.status, video.seconds) == ("queued", "8")
    assert [client.videos.retrieve(video.id).status for _ in range(3)] == ["in_progress", "completed", "completed"]
    assert client.videos.download_content(video.id).read() == mp4()
    assert [item.id for item in client.videos.list().data] == [video.id]
    assert lab.bill_usd == Decimal("0.80")
    assert client.videos.delete(video.id).deleted
    assert lab.bill_usd == Decimal("0.80"), "it was finished, and is charged for"
    with pytest.raises(openai.NotFoundError):
        client.videos.retrieve(video.id)


def test_a_video_cancelled_in_time_is_free(lab: ScriptedProvider, client: openai.OpenAI) -> None:
    video = client.videos.create(model="sora-2", prompt="a train")
    client.videos.delete(video.id)
    assert lab.invoice == []


@pytest.mark.parametrize(
    ("act", "seen"),
    [
        (faults.never_ends, ["queued", "in_progress", "in_progress", "in_progress"]),
        (faults.fails, ["queued", "in_progress", "failed", "failed"]),
        (faults.is_refused, ["queued", "failed", "failed", "failed"]),
        (faults.changes_its_mind, ["queued", "completed", "failed", "failed"]),
    ],
)
def test_fates_of_videos(lab: ScriptedProvider, client: openai.OpenAI, act: Act, seen: list[str]) -> None:
    lab.videos.next(act)
    video = client.videos.create(model="sora-2", prompt="a train")
    assert [video.status, *(client.videos.retrieve(video.id).status for _ in range(3))] == seen


def test_two_videos_of_one_name(lab: ScriptedProvider, client: openai.OpenAI) -> None:
    lab.videos.next(faults.video_states("queued", name="video_1"), faults.video_states("queued", name="video_1"))
    assert {client.videos.create(model="sora-2", prompt="a train").id for _ in range(2)} == {"video_1"}
    assert len(lab.invoice) == 2


def test_a_chat(lab: ScriptedProvider, client: openai.OpenAI) -> None:
    response = client.chat.completions.create(model="chat-1", messages=[{"role": "user", "content": "one two three"}])
    assert response.choices[0].message.content == "one two three"
    assert response.usage is not None
    assert response.usage.total_tokens == 6
    assert lab.bill_usd == Decimal("0.000009")


def test_a_streamed_chat(lab: ScriptedProvider, client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(
        model="chat-1",
        messages=[{"role": "user", "content": "one two"}],
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "one two"
    assert chunks[-1].usage is not None


def test_a_chat_stream_that_is_cut(lab: ScriptedProvider, client: openai.OpenAI) -> None:
    lab.chats.next(faults.cut_stream(2))
    stream = client.chat.completions.create(
        model="chat-1", messages=[{"role": "user", "content": "one two"}], stream=True
    )
    with pytest.raises(openai.APIConnectionError):
        list(stream)


@pytest.mark.parametrize(
    ("act", "kind", "lines"),
    [
        (faults.busy(7), openai.RateLimitError, 0),
        (faults.broken, openai.InternalServerError, 0),
        (faults.blocked, openai.BadRequestError, 0),
        (faults.unauthorized, openai.AuthenticationError, 0),
        (faults.missing, openai.NotFoundError, 0),
        (faults.dropped, openai.APIConnectionError, 1),
        (faults.truncated(), openai.APIConnectionError, 1),
        (faults.nonsense, ValueError, 1),
        (faults.nested, RecursionError, 1),
    ],
)
def test_faults(lab: ScriptedProvider, client: openai.OpenAI, act: Act, kind: type[Exception], lines: int) -> None:
    """Each is what the client's users know it as; what was accepted is on the invoice."""
    lab.images.next(act)
    with pytest.raises(kind):
        client.images.generate(model="easel-1", prompt="a pear")
    assert len(lab.invoice) == lines
    client.images.generate(model="easel-1", prompt="a pear")
    assert len(lab.invoice) == lines + 1, "and the next one is served again"


def test_the_key_is_echoed(lab: ScriptedProvider, client: openai.OpenAI) -> None:
    lab.images.next(faults.unauthorized)
    with pytest.raises(openai.AuthenticationError, match=KEY):
        client.images.generate(model="easel-1", prompt="a pear")


def test_the_response_says_how_long_to_wait(lab: ScriptedProvider, client: openai.OpenAI) -> None:
    lab.images.next(faults.busy(7))
    with pytest.raises(openai.RateLimitError) as caught:
        client.images.generate(model="easel-1", prompt="a pear")
    assert caught.value.response.headers["retry-after"] == "7"


def test_stalling(lab: ScriptedProvider, client: openai.OpenAI) -> None:
    lab.images.next(faults.stalled)
    with pytest.raises(openai.APITimeoutError):
        client.images.generate(model="easel-1", prompt="a pear", timeout=0.2)
    assert len(lab.invoice) == 1


def test_endless_responses(lab: ScriptedProvider, client: openai.OpenAI) -> None:
    lab.images.next(faults.huge(8))
    response = client.images.with_raw_response.generate(model="easel-1", prompt="a pear")
    assert len(response.content) == 8 * 2**20
