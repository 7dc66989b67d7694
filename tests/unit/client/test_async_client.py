"""`penstock.AsyncClient` against a gateway: what `Client` does, from an event loop."""

import inspect
from decimal import Decimal
from pathlib import Path

import pytest

from penstock import AsyncClient, Client, Generation, GenerationFailed, NotFinished, Refused
from tests import sounds
from tests.stories.processes import Serving
from tests.unit.client.conftest import Network

SMALL = "256x256"


async def test_images_and_sounds_are_made_and_saved(served: Serving, tmp_path: Path) -> None:
    async with AsyncClient(served.url, served.key) as client:
        made = await client.image("a fox", model="atelier/sketch", size=SMALL, n=2)
        paths = await client.save(made, tmp_path / "fox.png")
        assert [path.name for path in paths] == ["fox-1.png", "fox-2.png"]
        edited = await client.edit("at night", paths, model="atelier/retouch", size=SMALL)
        large = await client.upscale(await client.read(edited.files[0]), model="atelier/enlarge", scale_factor=2)
        assert (large.size, made.cost) == ("512x512", Decimal("0.002"))
        spoken = await client.speech("Hello.", model="atelier/voice", response_format="flac")
        assert sounds.container_of(await client.read(spoken.files[0])) == "flac"
        streamed = b"".join([chunk async for chunk in client.stream_speech("Hello.", model="atelier/voice")])
        assert sounds.container_of(streamed) == "mp3"


async def test_what_takes_longer_is_waited_for_or_cancelled(served: Serving) -> None:
    states: list[Generation] = []
    async with AsyncClient(served.url, served.key) as client:
        video = await client.video("a sunset", model="atelier/clip", seconds=1, on_progress=states.append)
        assert (video.status, states[-1]) == ("completed", video)
        assert (await client.get(video.id)).cost == video.cost
        assert (await client.wait(await client.start_image("a fox", model="atelier/sketch"))).kind == "image"
        assert (await client.wait(await client.start_speech("Hello.", model="atelier/voice"))).kind == "sound"
        with pytest.raises(GenerationFailed):
            await client.video("[fail]", model="atelier/clip", seconds=1)
        long = await client.start_video("a long walk", model="atelier/clip", seconds=4)
        with pytest.raises(NotFinished):
            await client.wait(long, wait_seconds=0)
        await client.cancel(long)


async def test_the_account_and_refusals(served: Serving) -> None:
    async with AsyncClient(served.url, served.key) as client:
        assert (await client.price("image", "a fox", model="atelier/sketch")).total == Decimal("0.001")
        assert (await client.balance()).billing_type in ("prepaid", "postpaid")
        assert await client.models("upscale")
        assert (await client.webhook_secret()).startswith("whsec_")
        with pytest.raises(Refused, match="MODEL_NOT_FOUND"):
            await client.image("a fox", model="atelier/nothing")


async def test_a_lost_response_is_asked_for_again_and_paid_once(served: Serving, network: Network) -> None:
    network.losses = 2
    async with AsyncClient(network.url, served.key) as client:
        made = await client.image("a fox", model="atelier/sketch", size=SMALL, session_id="lost to a loop")
    rows = served.call("GET", "/v1/requests?session_id=lost%20to%20a%20loop").json["data"]
    assert [row["id"] for row in rows] == [made.id]


def test_it_has_the_calls_of_the_other_client_with_the_same_arguments() -> None:
    def signatures(kind: type) -> dict[str, list[str]]:
        found = inspect.getmembers(kind, inspect.isfunction)
        return {name: list(inspect.signature(member).parameters) for name, member in found if name[0] != "_"}

    own = signatures(AsyncClient)
    assert own.pop("close") == ["self"]
    assert own == signatures(Client)
