"""One id, two vendors: when the second is asked, when nobody may be asked again, and who pays how much."""

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
from tests.fake_providers.bfl import MODERATED, Flux
from tests.fake_providers.exchange import Exchange, Ware
from tests.fake_providers.fal import Fal
from tests.fake_providers.scripted import KEY, KEY_ENV, png
from tests.fake_providers.server import Act, FakeProvider, answers, route, serving
from tests.fake_providers.vidu import Vidu, failed, problem
from tests.gateway import OpenGateway, RunningGateway
from tests.ports import unused_port
from tests.providers.calls import film, gateways_for

# The picture's maker has it for 0.03, its reseller for 0.05; the film's for 0.1 a second and for 0.154.
PICTURE, FILM = "flux-2-flex", "vidu-q3"
WHOLE = 10_000_000_000


def pictures(open_gateway: OpenGateway, first: Flux, second: Fal) -> AbstractAsyncContextManager[RunningGateway]:
    return gateways_for(open_gateway, {"bfl": (first, ""), "fal": (second, "")})


def films(open_gateway: OpenGateway, first: Vidu, second: Fal) -> AbstractAsyncContextManager[RunningGateway]:
    return gateways_for(open_gateway, {"vidu": (first, "/ent/v2"), "fal": (second, "")})


async def picture(running: RunningGateway, **body: Any) -> dict[str, Any]:
    """The answer to a caller who waits, while time passes."""
    task = asyncio.create_task(running.image(**{"model": PICTURE, **body}))

    async def done() -> bool:
        return task.done()

    await running.until(done, step_seconds=0.1)  # slowly: whoever waits for a picture does so for a minute or two
    answer: dict[str, Any] = task.result()
    return answer


async def billed(running: RunningGateway, request_id: str, cost: int) -> None:
    """Once, at this price, and nothing is held any more."""
    moved = await running.transfers(request_id)
    assert {"hold", "capture"} == moved.keys()
    assert moved["capture"] == cost
    assert await running.money() == (WHOLE - cost, 0)


# --------------------------------------------------------------------------------------------------- a definite failure


def wrong(status: int, **headers: str) -> Act:
    return answers({"detail": "No.", "message": "No.", "reason": "Whatever"}, status, **headers)


REFUSED_BUT_NOT_FOR_CONTENT = [wrong(status) for status in (400, 401, 402, 403, 404, 429, 500, 503)]


@pytest.mark.parametrize("act", REFUSED_BUT_NOT_FOR_CONTENT)
async def test_picture_goes_to_the_second(open_gateway: OpenGateway, act: Act) -> None:
    first, second = Flux(), Fal()
    first.next("submit", act)
    async with pictures(open_gateway, first, second) as running:
        answer = await picture(running)
        metadata = answer["metadata"]
        assert (metadata["executed_model"], str(metadata["cost"])) == ("fal/fal-ai/flux-2-flex", "0.05")
        assert metadata["model"] == PICTURE
        assert [one["outcome"] for one in metadata["attempts"]][1:] == ["made"]
        assert [one["provider"] for one in metadata["attempts"]] == ["bfl", "fal"]
        await billed(running, answer["id"], 50_000_000)
    assert (len(first.heard("submit")), len(second.heard("submit"))) == (1, 1)


@pytest.mark.parametrize("fate", ["Error", {"status": "Ready", "result": None}])
async def test_picture_that_failed_later_goes_to_the_second(open_gateway: OpenGateway, fate: Any) -> None:
    first, second = Flux(), Fal()
    first.fates.append(("Pending", fate))
    async with pictures(open_gateway, first, second) as running:
        answer = await picture(running)
        assert answer["metadata"]["provider"] == "fal"
        await billed(running, answer["id"], 50_000_000)


@pytest.mark.parametrize("act", REFUSED_BUT_NOT_FOR_CONTENT)
async def test_film_goes_to_the_second(open_gateway: OpenGateway, act: Act) -> None:
    first, second = Vidu(), Fal()
    first.next("create", act)
    async with films(open_gateway, first, second) as running:
        video = await film(running, model=FILM, seconds=5)
        metadata = video["metadata"]
        assert (video["status"], str(metadata["cost"])) == ("completed", "0.77")
        assert metadata["executed_model"] == "fal/fal-ai/vidu/q3/text-to-video"
        await billed(running, video["id"], 770_000_000)
    assert (len(first.heard("create")), len(second.heard("submit"))) == (1, 1)


@pytest.mark.parametrize("fate", [failed("SystemError"), {"state": "success", "creations": []}])
async def test_film_that_failed_later_goes_to_the_second(open_gateway: OpenGateway, fate: Any) -> None:
    first, second = Vidu(), Fal()
    first.fates.append(("created", "processing", fate))
    async with films(open_gateway, first, second) as running:
        video = await film(running, model=FILM, seconds=5)
        assert (video["status"], video["metadata"]["provider"]) == ("completed", "fal")
        await billed(running, video["id"], 770_000_000)


async def test_vendor_that_cannot_be_reached(open_gateway: OpenGateway) -> None:
    async with serving(Fal()) as second:
        first = {"base_url": f"http://127.0.0.1:{unused_port()}/ent/v2", "key_env": KEY_ENV}
        both = {"vidu": first, "fal": {"base_url": second.url, "key_env": KEY_ENV}}
        async with open_gateway(providers=both) as running:
            video = await film(running, model=FILM, seconds=5)
            assert (video["status"], video["metadata"]["provider"]) == ("completed", "fal")


async def test_first_vendor_is_paid_what_it_says(open_gateway: OpenGateway) -> None:
    first, second = Vidu(), Fal()
    first.credits = 90
    async with films(open_gateway, first, second) as running:
        video = await film(running, model=FILM, seconds=5)
        assert (video["metadata"]["executed_model"], str(video["metadata"]["cost"])) == ("vidu/viduq3-pro", "0.45")
        await billed(running, video["id"], 450_000_000)
    assert not second.heard("submit")


async def test_nobody_is_left(open_gateway: OpenGateway) -> None:
    first, second = Vidu(), Fal()
    first.next("create", wrong(500))
    second.next("submit", wrong(503))
    async with films(open_gateway, first, second) as running:
        video = await film(running, model=FILM, seconds=5)
        assert (video["status"], video["error"]["code"]) == ("failed", "ALL_PROVIDERS_EXHAUSTED")
        assert await running.money() == (WHOLE, 0)


async def test_vendor_that_was_asked_for_by_name_stands_alone(open_gateway: OpenGateway) -> None:
    first, second = Vidu(), Fal()
    first.next("create", wrong(500))
    async with films(open_gateway, first, second) as running:
        video = await film(running, model=f"vidu/{FILM}", seconds=5)
        assert (video["status"], video["error"]["code"]) == ("failed", "UPSTREAM_ERROR")
    assert not second.heard("submit")


# ------------------------------------------------------------------------------------------- nobody may be asked again

IN_DOUBT = {
    "dropped": faults.dropped,
    "truncated": faults.truncated(5),
    "nonsense": faults.nonsense,
    "no name": faults.raw(b'{"state": "created", "polling_url": 1}'),
    "gateway": faults.raw(b"<html>502</html>", "text/html", 502),
    "gateway in time": faults.raw(b"", "text/plain", 504),
}


@pytest.mark.parametrize("doubt", IN_DOUBT)
async def test_film_that_may_have_been_begun_is_not_begun_twice(open_gateway: OpenGateway, doubt: str) -> None:
    first, second = Vidu(), Fal()
    first.next("create", IN_DOUBT[doubt])
    async with films(open_gateway, first, second) as running:
        video = await film(running, model=FILM, seconds=5)
        assert (video["status"], video["error"]["code"]) == ("failed", "UPSTREAM_OUTCOME_UNKNOWN")
        assert await running.money() == (WHOLE, 0)
    assert (len(first.heard("create")), len(second.heard("submit"))) == (1, 0)


@pytest.mark.parametrize("doubt", IN_DOUBT)
async def test_picture_that_may_have_been_begun_is_not_begun_twice(open_gateway: OpenGateway, doubt: str) -> None:
    first, second = Flux(), Fal()
    first.next("submit", IN_DOUBT[doubt])
    async with pictures(open_gateway, first, second) as running:
        with pytest.raises(Problem) as caught:
            await picture(running)
        assert caught.value.should_retry is False
        assert await running.money() == (WHOLE, 0)
    assert (len(first.heard("submit")), len(second.heard("submit"))) == (1, 0)


# -------------------------------------------------------------------------------------------------- a matter of content


async def test_refusal_at_the_door_is_final(open_gateway: OpenGateway) -> None:
    first, second = Vidu(), Fal()
    first.next("create", answers(problem("AuditSubmitIllegal", "The prompt was not approved.", 400), 400))
    async with films(open_gateway, first, second) as running:
        video = await film(running, model=FILM, seconds=5)
        assert (video["status"], video["error"]["code"]) == ("failed", "CONTENT_POLICY_VIOLATION")
        assert await running.money() == (WHOLE, 0)
    assert not second.heard("submit")


async def test_refusal_of_what_was_made_is_final(open_gateway: OpenGateway) -> None:
    first, second = Flux(), Fal()
    first.fates.append(("Pending", MODERATED))
    async with pictures(open_gateway, first, second) as running:
        with pytest.raises(Problem) as caught:
            await picture(running)
        assert caught.value.code == "CONTENT_POLICY_VIOLATION"
        assert running.gateway.health.is_healthy("bfl", PICTURE), "to say no is no sign of illness"
    assert not second.heard("submit")


# -------------------------------------------------------------------------------------------------------------- illness


async def start(running: RunningGateway, vendor: FakeProvider, name: str, count: int) -> str:
    """One more film, up to the moment when this vendor has heard of so many; no time passes."""
    started = await running.video(model=FILM, seconds=5)
    await vendor.desks[name].reached(count)
    video_id: str = started.json["id"]
    return video_id


async def test_unwell_vendor_comes_last_until_it_had_time_to_recover(open_gateway: OpenGateway) -> None:
    first, second = Vidu(), Fal()
    first.next("create", *[wrong(500)] * 3)
    async with films(open_gateway, first, second) as running:
        videos = [await start(running, second, "submit", number + 1) for number in range(3)]
        assert (len(first.heard("create")), running.gateway.health.is_healthy("vidu", "viduq3-pro")) == (3, False)
        videos.append(await start(running, second, "submit", 4))
        assert len(first.heard("create")) == 3, "the fourth film was the second vendor's from the start"
        running.clock.advance(11)
        videos.append(await start(running, first, "create", 4))
        ended = [await running.finished(video) for video in videos]
        assert [one["metadata"]["provider"] for one in ended] == ["fal"] * 4 + ["vidu"]
        assert [len(await running.attempts(video)) for video in videos] == [2, 2, 2, 1, 1]
        assert running.gateway.health.is_healthy("vidu", "viduq3-pro")


async def test_retry_after_is_honoured(open_gateway: OpenGateway) -> None:
    first, second = Vidu(), Fal()
    first.next("create", wrong(429, retry_after="60"))
    async with films(open_gateway, first, second) as running:
        videos = [await start(running, second, "submit", 1)]
        running.clock.advance(50)
        videos.append(await start(running, second, "submit", 2))
        assert len(first.heard("create")) == 1
        running.clock.advance(11)
        videos.append(await start(running, first, "create", 2))
        ended = [await running.finished(video) for video in videos]
        assert [one["metadata"]["provider"] for one in ended] == ["fal", "fal", "vidu"]


async def test_unwell_vendor_is_better_than_none(open_gateway: OpenGateway) -> None:
    first, second = Vidu(), Fal()
    first.next("create", wrong(429, retry_after="60"))
    async with films(open_gateway, first, second) as running:
        waiting = await start(running, second, "submit", 1)
        second.next("submit", wrong(503))
        later = await start(running, first, "create", 2)
        ended = [await running.finished(video) for video in (waiting, later)]
        assert [one["metadata"]["provider"] for one in ended] == ["fal", "vidu"]
        assert {one["provider"]: one["candidate"] for one in await running.attempts(later)} == {"fal": 0, "vidu": 1}


# --------------------------------------------------------------------------------------------------------- a new vendor

ACME = '''
"""Acme: images of anvils."""

from penstock.providers.convert import pixels, size_text
from penstock.providers.spec import (
    File,
    Model,
    Operation,
    Provider,
    Result,
    bearer,
    complete_table,
    converted,
    passthrough,
    price_list,
)

price = price_list("acme.example/prices, read 2026-11-15")


def read_images(reply):
    return Result(files=tuple(File(url=url) for url in reply.json["pictures"]))


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
    def draw(self, call: Exchange) -> Ware:
        width, height = map(int, call.heard.fields["size"].split("*"))
        return Ware({"pictures": [self.put(png(width, height), "image/png")]})


def in_the_folder(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    """As if it lay beside the others."""
    (place / "acme.py").write_text(ACME)
    monkeypatch.setattr(providers, "__path__", [*providers.__path__, str(place)])


def in_a_package(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    """What an installer makes of one module and a line that names it."""
    (place / "acme_films.py").write_text(ACME)
    about = place / "acme_films-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-films\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[{providers.GROUP}]\nacme = acme_films:PROVIDER\n")
    monkeypatch.syspath_prepend(place)


@pytest.fixture
def discovers_anew() -> Iterator[None]:
    """What has been found so far is forgotten, and so is what a test adds."""
    providers.discover.cache_clear()
    yield
    providers.discover.cache_clear()


@pytest.mark.usefixtures("discovers_anew")
@pytest.mark.parametrize("added", [in_the_folder, in_a_package])
async def test_new_vendor_is_one_file(
    open_gateway: OpenGateway,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    added: Callable[[pytest.MonkeyPatch, Path], None],
) -> None:
    (place := tmp_path / "added").mkdir()
    for name in ("penstock.providers.acme", "acme_films"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    added(monkeypatch, place)
    assert [file.name for file in place.rglob("*.py")] in (["acme.py"], ["acme_films.py"])
    acme, flux, fal = Acme(), Flux(), Fal()
    flux.next("submit", wrong(500))
    async with gateways_for(open_gateway, {"acme": (acme, ""), "bfl": (flux, ""), "fal": (fal, "")}) as running:
        assert "acme/anvil" in [one["id"] for one in running.gateway.catalog.list()]
        anvil = await picture(running, model="acme/anvil", size="70x64")
        assert (anvil["metadata"]["executed_model"], str(anvil["metadata"]["cost"])) == ("acme/anvil-9", "0.07")
        assert acme.heard("draw")[0].fields == {"prompt": "a pear", "size": "64*64", "brush": "anvil-9"}
        shared = await picture(running)
        assert (shared["metadata"]["executed_model"], str(shared["metadata"]["cost"])) == ("acme/flux", "0.04")
        with pytest.raises(Problem, match=r"`mask` is not supported|does not support image edits"):
            await running.edit(model="acme/anvil", image="data:image/png;base64,")
    assert not fal.heard("submit"), "by their priorities: the maker, the new vendor, the reseller"
