"""From an empty folder to a video, with OpenAI's client only."""

import base64
import io
from collections.abc import Iterator
from urllib.request import urlopen

import openai
import pytest
from PIL import Image

from penstock.imaging.marks import find_marks
from tests.fake_providers import faults
from tests.fake_providers.scripted import ScriptedProvider, mp4, png
from tests.gateway import sqlite_only
from tests.stories.processes import Installation, Serving

pytestmark = pytest.mark.filterwarnings("ignore:The Sora API:DeprecationWarning")


@pytest.fixture
def client(served: Serving) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=served.base_url, api_key=served.key, timeout=30) as client:
        yield client


def opened(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data))


def fetched(url: str | None) -> bytes:
    with urlopen(url or "") as response:  # noqa: S310
        found: bytes = response.read()
        return found


def test_the_first_day_of_a_user(served: Serving, client: openai.OpenAI, lab: ScriptedProvider) -> None:
    """Models, images as URL and base64, an edit, a video from creation to deletion, and the cost."""
    models = [model.id for model in client.models.list()]
    assert {"image-1", "edit-1", "video-1", "atelier/sketch", "atelier/clip"} <= set(models)
    assert client.models.retrieve("atelier/sketch").owned_by == "atelier"

    by_address = client.images.generate(model="image-1", prompt="a pear", size="256x256")
    assert by_address.data is not None
    assert opened(fetched(by_address.data[0].url)).size == (256, 256)
    inside = client.images.generate(model="image-1", prompt="a pear", response_format="b64_json", n=2)
    assert inside.data is not None
    assert len([opened(base64.b64decode(image.b64_json or "")) for image in inside.data]) == 2
    edited = client.images.edit(model="edit-1", prompt="a hat", image=[("a.png", png(64, 64)), ("b.png", png(64, 64))])
    assert edited.data is not None
    assert fetched(edited.data[0].url).startswith(b"\x89PNG")

    video = client.videos.create(model="video-1", prompt="a train", seconds="4", size="1280x720")
    assert video.status == "queued"
    done = client.videos.poll(video.id)
    assert (done.status, done.seconds, done.size) == ("completed", "4", "1280x720")
    content = client.videos.download_content(video.id).read()
    assert find_marks(content).c2pa_bytes, "the gateway signs what nobody has signed"
    assert mp4().partition(b"mdat")[2].partition(b"moov")[0] in content, "its frames stay as they were"
    assert [listed.id for listed in client.videos.list()] == [video.id]
    client.videos.delete(video.id)
    assert client.videos.retrieve(video.id).status == "completed", "what is finished stays finished"

    records = served.call("GET", "/v1/requests?summary=true").json
    assert records["summary"] == {"total_cost": 0.56, "currency": "usd", "count": 4}
    assert served.call("GET", "/v1/balance").json["available"] == {"amount": 9.44, "currency": "usd"}
    assert float(lab.bill_usd) == 0.56
    purged = served.call("DELETE", f"/v1/requests/{video.id}/payloads").json
    assert purged == {"id": video.id, "purged": True, "already_purged": False, "media_deleted": 1}
    with pytest.raises(openai.NotFoundError):
        client.videos.download_content(video.id)


def test_the_first_day_without_any_provider(shared_client: openai.OpenAI) -> None:
    """The first command of the README, and a video of the built-in provider."""
    made = shared_client.images.generate(model="atelier/sketch", prompt="a lighthouse at dusk", size="128x96")
    assert made.data is not None
    assert opened(fetched(made.data[0].url)).size == (128, 96)
    video = shared_client.videos.create(model="atelier/clip", prompt="a lighthouse", seconds="1", size="64x64")
    assert shared_client.videos.poll(video.id).status == "completed"
    assert shared_client.videos.download_content(video.id).read()[4:8] == b"ftyp"


def test_errors_as_exceptions_of_the_client(
    shared_server: Serving, shared_client: openai.OpenAI, shared_lab: ScriptedProvider
) -> None:
    with pytest.raises(openai.NotFoundError, match="Did you mean"):
        shared_client.images.generate(model="imag-1", prompt="x")
    with pytest.raises(openai.BadRequestError) as refused:
        shared_client.images.generate(model="image-1", prompt="x", n=99)
    assert refused.value.body == {
        "message": "`n` must be from 1 to 10.", "type": "invalid_request_error", "code": "INVALID_REQUEST", "param": "n"
    }  # fmt: skip
    with (
        pytest.raises(openai.AuthenticationError),
        openai.OpenAI(base_url=shared_server.base_url, api_key="pk_no") as nobody,
    ):
        nobody.models.list()
    shared_lab.images.next(faults.blocked)
    with pytest.raises(openai.BadRequestError) as blocked:
        shared_client.images.generate(model="image-1", prompt="x")
    assert blocked.value.code == "CONTENT_POLICY_VIOLATION"


def test_paid_calls_are_not_repeated(shared_client: openai.OpenAI, shared_lab: ScriptedProvider) -> None:
    """The client repeats failed calls by itself, unless the gateway says that it would cost twice."""
    images, charges = len(shared_lab.images), len(shared_lab.invoice)
    shared_lab.images.next(faults.dropped)
    with pytest.raises(openai.InternalServerError):
        shared_client.images.generate(model="image-1", prompt="x")
    assert len(shared_lab.images) - images == 1
    shared_lab.images.next(faults.busy(0), faults.busy(0))
    shared_client.images.generate(model="image-1", prompt="x")
    assert len(shared_lab.images) - images == 4, "rejected twice before any upstream call, then served"
    assert len(shared_lab.invoice) - charges == 2


@sqlite_only
def test_the_first_key_is_printed_once(story: Installation) -> None:
    with story.serving() as first:
        assert first.printed.count("pk_") == 2
        assert "shown only once" in first.printed
        assert first.call("GET", "/v1/balance").status == 200
        assert first.stop() == 0
    with story.serving() as second:
        assert "pk_" not in second.printed
        assert second.call("GET", "/v1/balance").status == 200
    assert story.key not in "".join(path.read_text() for path in story.data.parent.glob("log-*"))
