"""One id, two providers: when the second is tried, when no other may be tried, and what the caller pays."""

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from penstock import providers
from penstock.errors import Problem
from tests.fake_providers import faults
from tests.fake_providers.bfl import MODERATED, BlackForestLabs
from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.fal import Fal
from tests.fake_providers.scripted import KEY, KEY_ENV, png
from tests.fake_providers.server import Act, FakeProvider, responds, route, serving
from tests.fake_providers.vidu import Vidu, failed, problem
from tests.gateway import OpenGateway, RunningGateway
from tests.ports import unused_port
from tests.providers.calls import create_video, gateways_for

# The image costs 0.03 at the first provider and 0.05 at the second, the video 0.1 and 0.154 per second.
IMAGE, VIDEO = "flux-2-flex", "vidu-q3"
CREDIT = 10_000_000_000


def image_gateway(
    open_gateway: OpenGateway, first: BlackForestLabs, second: Fal
) -> AbstractAsyncContextManager[RunningGateway]:
    return gateways_for(open_gateway, {"bfl": (first, ""), "fal": (second, "")})


def video_gateway(open_gateway: OpenGateway, first: Vidu, second: Fal) -> AbstractAsyncContextManager[RunningGateway]:
    return gateways_for(open_gateway, {"vidu": (first, "/ent/v2"), "fal": (second, "")})


async def image(running: RunningGateway, **body: Any) -> dict[str, Any]:
    """The response to a caller who waits, while time passes."""
    task = asyncio.create_task(running.image(**{"model": IMAGE, **body}))

    async def done() -> bool:
        return task.done()

    await running.wait_until(done, step_seconds=0.1)  # in small steps: the caller waits only a minute or two
    response: dict[str, Any] = task.result()
    return response


async def check_billed(running: RunningGateway, request_id: str, cost: int) -> None:
    """Check that the request was captured once, at this cost, and that nothing is held."""
    moved = await running.transfers(request_id)
    assert {"hold", "capture"} == moved.keys()
    assert moved["capture"] == cost
    assert await running.money() == (CREDIT - cost, 0)


# --------------------------------------------------------------------------------------------------- a definite failure


def wrong(status: int, **headers: str) -> Act:
    return responds({"detail": "No.", "message": "No.", "reason": "Whatever"}, status, **headers)


REFUSED_BUT_NOT_FOR_CONTENT = [wrong(status) for status in (400, 401, 402, 403, 404, 429, 500, 503)]


@pytest.mark.parametrize("act", REFUSED_BUT_NOT_FOR_CONTENT)
async def test_a_failed_image_goes_to_the_second_provider(open_gateway: OpenGateway, act: Act) -> None:
    first, second = BlackForestLabs(), Fal()
    first.next("submit", act)
    async with image_gateway(open_gateway, first, second) as running:
        response = await image(running)
        metadata = response["metadata"]
        assert (metadata["executed_model"], str(metadata["cost"])) == ("fal/fal-ai/flux-2-flex", "0.05")
        assert metadata["model"] == IMAGE
        assert [attempt["outcome"] for attempt in metadata["attempts"]][1:] == ["made"]
        assert [attempt["provider"] for attempt in metadata["attempts"]] == ["bfl", "fal"]
        await check_billed(running, response["id"], 50_000_000)
    assert (len(first.received("submit")), len(second.received("submit"))) == (1, 1)


@pytest.mark.parametrize("fate", ["Error", {"status": "Ready", "result": None}])
async def test_an_image_job_that_fails_later_goes_to_the_second_provider(open_gateway: OpenGateway, fate: Any) -> None:
    first, second = BlackForestLabs(), Fal()
    first.next_states.append(("Pending", fate))
    async with image_gateway(open_gateway, first, second) as running:
        response = await image(running)
        assert response["metadata"]["provider"] == "fal"
        await check_billed(running, response["id"], 50_000_000)


@pytest.mark.parametrize("act", REFUSED_BUT_NOT_FOR_CONTENT)
async def test_a_failed_video_goes_to_the_second_provider(open_gateway: OpenGateway, act: Act) -> None:
    first, second = Vidu(), Fal()
    first.next("create", act)
    async with video_gateway(open_gateway, first, second) as running:
        video = await create_video(running, model=VIDEO, seconds=5)
        metadata = video["metadata"]
        assert (video["status"], str(metadata["cost"])) == ("completed", "0.77")
        assert metadata["executed_model"] == "fal/fal-ai/vidu/q3/text-to-video"
        await check_billed(running, video["id"], 770_000_000)
    assert (len(first.received("create")), len(second.received("submit"))) == (1, 1)


@pytest.mark.parametrize("fate", [failed("SystemError"), {"state": "success", "creations": []}])
async def test_a_video_job_that_fails_later_goes_to_the_second_provider(open_gateway: OpenGateway, fate: Any) -> None:
    first, second = Vidu(), Fal()
    first.next_states.append(("created", "processing", fate))
    async with video_gateway(open_gateway, first, second) as running:
        video = await create_video(running, model=VIDEO, seconds=5)
        assert (video["status"], video["metadata"]["provider"]) == ("completed", "fal")
        await check_billed(running, video["id"], 770_000_000)


async def test_a_provider_that_cannot_be_reached(open_gateway: OpenGateway) -> None:
    async with serving(Fal()) as second:
        first = {"base_url": f"http://127.0.0.1:{unused_port()}/ent/v2", "key_env": KEY_ENV}
        both = {"vidu": first, "fal": {"base_url": second.url, "key_env": KEY_ENV}}
        async with open_gateway(providers=both) as running:
            video = await create_video(running, model=VIDEO, seconds=5)
            assert (video["status"], video["metadata"]["provider"]) == ("completed", "fal")


async def test_the_cost_is_what_the_first_provider_reports(open_gateway: OpenGateway) -> None:
    first, second = Vidu(), Fal()
    first.credits = 90
    async with video_gateway(open_gateway, first, second) as running:
        video = await create_video(running, model=VIDEO, seconds=5)
        assert (video["metadata"]["executed_model"], str(video["metadata"]["cost"])) == ("vidu/viduq3-pro", "0.45")
        await check_billed(running, video["id"], 450_000_000)
    assert not second.received("submit")


async def test_all_providers_failed(open_gateway: OpenGateway) -> None:
    first, second = Vidu(), Fal()
    first.next("create", wrong(500))
    second.next("submit", wrong(500))
    async with video_gateway(open_gateway, first, second) as running:
        video = await create_video(running, model=VIDEO, seconds=5)
        assert (video["status"], video["error"]["code"]) == ("failed", "ALL_PROVIDERS_EXHAUSTED")
        assert await running.money() == (CREDIT, 0)


async def test_a_named_provider_has_no_failover(open_gateway: OpenGateway) -> None:
    first, second = Vidu(), Fal()
    first.next("create", wrong(500))
    async with video_gateway(open_gateway, first, second) as running:
        video = await create_video(running, model=f"vidu/{VIDEO}", seconds=5)
        assert (video["status"], video["error"]["code"]) == ("failed", "UPSTREAM_ERROR")
    assert not second.received("submit")


# ----------------------------------------------------------------------------------------- no other may be tried

UNKNOWN_OUTCOMES = {
    "dropped": faults.dropped,
    "truncated": faults.truncated(5),
    "nonsense": faults.nonsense,
    "no name": faults.raw(b'{"state": "created", "polling_url": 1}'),
    "gateway": faults.raw(b"<html>502</html>", "text/html", 502),
    "gateway in time": faults.raw(b"", "text/plain", 504),
}


@pytest.mark.parametrize("outcome", UNKNOWN_OUTCOMES)
async def test_a_video_with_an_unknown_outcome_is_not_submitted_twice(open_gateway: OpenGateway, outcome: str) -> None:
    first, second = Vidu(), Fal()
    first.next("create", UNKNOWN_OUTCOMES[outcome])
    async with video_gateway(open_gateway, first, second) as running:
        video = await create_video(running, model=VIDEO, seconds=5)
        assert (video["status"], video["error"]["code"]) == ("failed", "UPSTREAM_OUTCOME_UNKNOWN")
        assert await running.money() == (CREDIT, 0)
    assert (len(first.received("create")), len(second.received("submit"))) == (1, 0)


@pytest.mark.parametrize("outcome", UNKNOWN_OUTCOMES)
async def test_an_image_with_an_unknown_outcome_is_not_submitted_twice(open_gateway: OpenGateway, outcome: str) -> None:
    first, second = BlackForestLabs(), Fal()
    first.next("submit", UNKNOWN_OUTCOMES[outcome])
    async with image_gateway(open_gateway, first, second) as running:
        with pytest.raises(Problem) as caught:
            await image(running)
        assert caught.value.should_retry is False
        assert await running.money() == (CREDIT, 0)
    assert (len(first.received("submit")), len(second.received("submit"))) == (1, 0)


# -------------------------------------------------------------------------------------------------- a matter of content


async def test_no_failover_after_a_refused_prompt(open_gateway: OpenGateway) -> None:
    first, second = Vidu(), Fal()
    first.next("create", responds(problem("AuditSubmitIllegal", "The prompt was not approved.", 400), 400))
    async with video_gateway(open_gateway, first, second) as running:
        video = await create_video(running, model=VIDEO, seconds=5)
        assert (video["status"], video["error"]["code"]) == ("failed", "CONTENT_POLICY_VIOLATION")
        assert await running.money() == (CREDIT, 0)
    assert not second.received("submit")


async def test_no_failover_after_a_refused_output(open_gateway: OpenGateway) -> None:
    first, second = BlackForestLabs(), Fal()
    first.next_states.append(("Pending", MODERATED))
    async with image_gateway(open_gateway, first, second) as running:
        with pytest.raises(Problem) as caught:
            await image(running)
        assert caught.value.code == "CONTENT_POLICY_VIOLATION"
        assert running.gateway.health.is_healthy("bfl", IMAGE), "a refusal does not count as a failure"
    assert not second.received("submit")


# ------------------------------------------------------------------------------------------------------------- health


async def start(running: RunningGateway, provider: FakeProvider, name: str, count: int) -> str:
    """Submit one more video, and wait until this provider has got so many; no time passes."""
    started = await running.video(model=VIDEO, seconds=5)
    await provider.endpoints[name].reached(count)
    video_id: str = started.json["id"]
    return video_id


async def test_an_unhealthy_provider_comes_last_until_its_pause_ends(open_gateway: OpenGateway) -> None:
    first, second = Vidu(), Fal()
    first.next("create", *[wrong(500)] * 3)
    async with video_gateway(open_gateway, first, second) as running:
        videos = [await start(running, second, "submit", number + 1) for number in range(3)]
        assert (len(first.received("create")), running.gateway.health.is_healthy("vidu", "viduq3-pro")) == (3, False)
        videos.append(await start(running, second, "submit", 4))
        assert len(first.received("create")) == 3, "the fourth video went to the second provider at once"
        running.clock.advance(11)
        videos.append(await start(running, first, "create", 4))
        ended = [await running.wait_for_video(video) for video in videos]
        assert [record["metadata"]["provider"] for record in ended] == ["fal"] * 4 + ["vidu"]
        assert [len(await running.attempts(video)) for video in videos] == [2, 2, 2, 1, 1]
        assert running.gateway.health.is_healthy("vidu", "viduq3-pro")


async def test_retry_after_is_respected(open_gateway: OpenGateway) -> None:
    first, second = Vidu(), Fal()
    first.next("create", wrong(429, retry_after="60"))
    async with video_gateway(open_gateway, first, second) as running:
        videos = [await start(running, second, "submit", 1)]
        running.clock.advance(50)
        videos.append(await start(running, second, "submit", 2))
        assert len(first.received("create")) == 1
        running.clock.advance(11)
        videos.append(await start(running, first, "create", 2))
        ended = [await running.wait_for_video(video) for video in videos]
        assert [record["metadata"]["provider"] for record in ended] == ["fal", "fal", "vidu"]


async def test_an_unhealthy_provider_is_tried_if_the_others_fail(open_gateway: OpenGateway) -> None:
    first, second = Vidu(), Fal()
    first.next("create", wrong(429, retry_after="60"))
    async with video_gateway(open_gateway, first, second) as running:
        waiting = await start(running, second, "submit", 1)
        second.next("submit", wrong(503))
        later = await start(running, first, "create", 2)
        ended = [await running.wait_for_video(video) for video in (waiting, later)]
        assert [record["metadata"]["provider"] for record in ended] == ["fal", "vidu"]
        assert {attempt["provider"]: attempt["candidate"] for attempt in await running.attempts(later)} == {
            "fal": 0,
            "vidu": 1,
        }


# ------------------------------------------------------------------------------------------------------- a new provider

ACME = '''
"""Acme: images of anvils."""

from penstock.providers.convert import pixels, size_text
from penstock.providers.spec import (
    File,
    Model,
    Operation,
    Provider,
    Result,
    Source,
    bearer,
    complete_table,
    converted,
    passthrough,
    price_list,
)

price = price_list(Source("acme.example/prices", "2026-11-15"))


def read_images(reply):
    return Result(files=tuple(File(url=url) for url in reply.json["images"]))


IMAGE = Operation(
    task="image",
    send="POST /draw",
    read=read_images,
    model_field="brush",
    params=complete_table(
        "image",
        passthrough("prompt", required=True),
        converted("frame", to="size", convert=size_text(pixels(multiple=32), "*")),
    ),
)
PROVIDER = Provider(
    slug="acme",
    name="Acme",
    docs="https://acme.example",
    base_url="https://api.acme.example",
    key_env="ACME_KEY",
    auth=bearer,
    models=(
        Model(id="acme/anvil", upstream="anvil-9", op=IMAGE, prices=(price("0.07", "image"),)),
        Model(id="flux-2-flex", upstream="flux", op=IMAGE, prices=(price("0.04", "image"),), priority=5),
    ),
)
'''


class Acme(FakeProvider):
    credential = ("authorization", f"Bearer {KEY}")

    @route("POST /draw")
    def draw(self, call: Exchange) -> FakeResponse:
        width, height = map(int, call.request.fields["size"].split("*"))
        return FakeResponse({"images": [self.put(png(width, height), "image/png")]})


def in_the_folder(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    """As a file in the folder of the providers."""
    (place / "acme.py").write_text(ACME)
    monkeypatch.setattr(providers, "__path__", [*providers.__path__, str(place)])


def in_a_package(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    """As an installed package with an entry point."""
    (place / "acme_images.py").write_text(ACME)
    about = place / "acme_images-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-images\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[{providers.ENTRY_POINT_GROUP}]\nacme = acme_images:PROVIDER\n")
    monkeypatch.syspath_prepend(place)


@pytest.fixture
def without_discovery_cache() -> Iterator[None]:
    """Search for providers again, before the test and after it."""
    providers.discover.cache_clear()
    yield
    providers.discover.cache_clear()


@pytest.mark.usefixtures("without_discovery_cache")
@pytest.mark.parametrize("added", [in_the_folder, in_a_package])
async def test_a_new_provider_is_one_file(
    open_gateway: OpenGateway,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    added: Callable[[pytest.MonkeyPatch, Path], None],
) -> None:
    (place := tmp_path / "added").mkdir()
    for name in ("penstock.providers.acme", "acme_images"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    added(monkeypatch, place)
    assert [file.name for file in place.rglob("*.py")] in (["acme.py"], ["acme_images.py"])
    acme, flux, fal = Acme(), BlackForestLabs(), Fal()
    flux.next("submit", wrong(500))
    async with gateways_for(open_gateway, {"acme": (acme, ""), "bfl": (flux, ""), "fal": (fal, "")}) as running:
        assert "acme/anvil" in [model["id"] for model in running.gateway.catalog.describe_all()]
        anvil = await image(running, model="acme/anvil", size="70x64")
        assert (anvil["metadata"]["executed_model"], str(anvil["metadata"]["cost"])) == ("acme/anvil-9", "0.07")
        assert acme.received("draw")[0].fields == {"prompt": "a pear", "size": "64*64", "brush": "anvil-9"}
        shared = await image(running)
        assert (shared["metadata"]["executed_model"], str(shared["metadata"]["cost"])) == ("acme/flux", "0.04")
        with pytest.raises(Problem, match=r"`mask` is not supported|does not support image edits"):
            await running.edit(model="acme/anvil", image="data:image/png;base64,")
    assert not fal.received("submit"), "the order of their priorities: bfl, acme, fal"
