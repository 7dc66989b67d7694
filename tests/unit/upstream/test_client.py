"""What providers answer, made fit to work with: verdicts, doubts, words and figures."""

from dataclasses import replace
from typing import Any

import pytest

from penstock.providers.spec import File, Provider, Reply, Result
from penstock.schema import Request
from penstock.store.base import Dialect
from penstock.upstream.catalog import Candidate
from penstock.upstream.client import (
    AttemptFailed,
    OutcomeUnknown,
    clean,
    explain,
    kind_of,
    retry_after,
    sound,
)
from tests.fake_providers import faults
from tests.fake_providers.scripted import KEY
from tests.fake_providers.server import Act
from tests.gateway import OpenGateway, RunningGateway

PICTURE = Request(task="image", model="picture", values={"prompt": "a pear", "size": "64x64"})
FILM = Request(task="video", model="film", values={"prompt": "a train", "seconds": 4})


@pytest.fixture
def dialect() -> Dialect:
    """The database has no part in this."""
    return "sqlite"


def option(running: RunningGateway, model: str = "picture") -> Candidate:
    task = "video" if model == "film" else "image"
    return running.gateway.catalog.route(model, (task,), lambda *_: True).first


async def submitted(running: RunningGateway, request: Request = PICTURE) -> Result:
    return await running.gateway.upstream.submit(option(running, request.model), request, 1, {})


def provider(**said: Any) -> Provider:
    return Provider(slug="acme", name="Acme", docs="", base_url="https://acme.example/v1", models=(), **said)


# ----------------------------------------------------------------------------------------------------------- submitting


async def test_a_picture(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        result = await submitted(running)
        assert (result.status, len(result.files)) == ("completed", 1)
        heard = running.lab.images.heard[0]
        assert heard.key == KEY
        assert heard.fields == {"model": "easel-1", "prompt": "a pear", "size": "64x64", "n": 1}


async def test_a_job(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        upstream, film = running.gateway.upstream, option(running, "film")
        result = await submitted(running, FILM)
        assert (result.status, result.ref) == ("queued", {"id": next(iter(running.lab.films))})
        assert [(await upstream.poll(film, result.ref)).status for _ in range(2)] == ["in_progress", "completed"]
        source = upstream.source(film, (await upstream.poll(film, result.ref)).files[0])
        assert source.trusted
        assert source.headers["authorization"] == f"Bearer {KEY}"
        assert await upstream.cancel(film, result.ref) is True
        assert await upstream.cancel(film, result.ref) is False, "it is gone"


@pytest.mark.parametrize(
    ("act", "kind", "retry_after_seconds"),
    [
        (faults.busy(7), "busy", 7),
        (faults.busy(10**6), "busy", 120),
        (faults.busy(), "busy", None),
        (faults.broken, "broken", None),
        (faults.unauthorized, "broken", None),
        (faults.blocked, "refused", None),
        (faults.rejected, "rejected", None),
        (faults.empty, "unreadable", None),
        (faults.page, "unreadable", None),
        (faults.redirect("https://elsewhere.example/"), "broken", None),
    ],
)
async def test_verdicts(open_gateway: OpenGateway, act: Act, kind: str, retry_after_seconds: float | None) -> None:
    async with open_gateway(works=False) as running:
        running.lab.images.next(act)
        with pytest.raises(AttemptFailed) as caught:
            await submitted(running)
        assert (caught.value.kind, caught.value.sent) == (kind, True)
        assert caught.value.retry_after_seconds == retry_after_seconds
        assert KEY not in caught.value.message


@pytest.mark.parametrize(
    "act",
    [
        faults.dropped,
        faults.truncated(),
        faults.nonsense,
        faults.page,
        faults.raw(b"", "text/plain", 504),
        faults.altered(id=None),
        faults.altered(id=7),
        faults.altered(status="dancing"),
    ],
)
async def test_doubts_about_a_job(open_gateway: OpenGateway, act: Act) -> None:
    async with open_gateway(works=False) as running:
        running.lab.videos.next(act)
        with pytest.raises(OutcomeUnknown):
            await submitted(running, FILM)


async def test_a_gateway_error_that_the_provider_explains(open_gateway: OpenGateway) -> None:
    """Its own words under that status are a verdict."""
    async with open_gateway(works=False) as running:
        running.lab.videos.next(faults.error(502, "No machine is free."))
        with pytest.raises(AttemptFailed, match="No machine is free"):
            await submitted(running, FILM)


async def test_asking_never_ends_a_job(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        result = await submitted(running, FILM)
        for act in (faults.broken, faults.dropped, faults.page, faults.nonsense, faults.missing):
            running.lab.polls.next(act)
            with pytest.raises(AttemptFailed):
                await running.gateway.upstream.poll(option(running, "film"), result.ref)


async def test_answers_about_a_job_may_be_read_otherwise(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        film = option(running, "film")
        op = replace(film.model.op, read_poll=lambda reply: Result(status="failed", message=reply.json["id"]))
        target = replace(film, model=replace(film.model, op=op))
        result = await running.gateway.upstream.submit(target, FILM, 1, {})
        assert result.status == "queued"
        assert (await running.gateway.upstream.poll(target, result.ref)).message == result.ref["id"]


async def test_credentials_stay_at_home(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        upstream, film = running.gateway.upstream, option(running, "film")
        assert upstream.source(film, File(url="https://cdn.example/x.mp4")).headers == {}
        with pytest.raises(AttemptFailed, match="outside its own address"):
            upstream.source(film, File(url="https://cdn.example/x.mp4", private=True))
        moved = replace(film, model=replace(film.model, op=replace(film.model.op, poll="GET {where}")))
        with pytest.raises(AttemptFailed, match="outside its own address"):
            await upstream.poll(moved, {"where": "https://evil.example/steal"})


async def test_a_provider_that_cannot_cancel(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        film = option(running, "film")
        mute = replace(film, model=replace(film.model, op=replace(film.model.op, cancel=None)))
        assert await running.gateway.upstream.cancel(mute, {"id": "x"}) is False


# -------------------------------------------------------------------------------------------------------------- answers


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (301, "broken"), (400, "rejected"), (401, "broken"), (402, "broken"), (403, "broken"), (404, "rejected"),
        (413, "rejected"), (422, "rejected"), (429, "busy"), (500, "broken"), (503, "broken"),
    ],
)  # fmt: skip
def test_what_a_status_means(status: int, kind: str) -> None:
    assert kind_of(provider(), Reply(status)) == kind


def test_the_providers_own_word_goes_first() -> None:
    assert kind_of(provider(failure_kind=lambda reply: "refused"), Reply(500)) == "refused"
    assert kind_of(provider(failure_kind=lambda reply: reply.json["x"]), Reply(500, {}, b"<html>")) == "broken"


def test_explanations() -> None:
    said = b'{"error": {"message": "Too\\u0000wide.\\n"}}'
    assert explain(provider(), Reply(400, {}, said)) == "Too wide."
    assert explain(provider(), Reply(400, {}, b"<html>")) == "Acme answered 400."
    assert explain(provider(), Reply(400, {}, b'{"error": {"message": 7}}')) == "Acme answered 400."
    assert explain(provider(), Reply(401, {}, said)) == "Acme did not accept the gateway's account."


@pytest.mark.parametrize(
    "secret",
    [
        "sk-abcdefgh12345678",
        "pk_abcdefgh12345678",
        "r8_abcdefgh12345678",
        "Bearer abcdefgh12345678",
        "whsec_abcdefgh12",
    ],
)
def test_words_are_cleaned(secret: str) -> None:
    assert secret not in clean(f"Key {secret} is wrong.")
    assert clean("my own key", "own key") == "my …"
    assert clean("a\r\nb\x1b[31m") == "a b [31m"
    assert len(clean("x" * 10_000)) == 500
    assert clean(None) == ""


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        ("0.5", 0.5),
        ("9999", 120.0),
        ("inf", 120.0),
        ("nan", None),
        ("-1", None),
        ("soon", None),
        ("", None),
    ],
)
def test_how_long_to_wait(header: str, seconds: float | None) -> None:
    assert retry_after(Reply(429, {"retry-after": header})) == seconds


def test_sound_results_stay_as_they_are() -> None:
    result = Result(
        files=(File(url="https://cdn.example/x", revised_prompt="a red pear"),),
        ref={"id": "7"},
        upstream_id="7",
        message="well",
        cost_usd="0.25",
        usage={"output": 3, "second": 4.5},  # type: ignore[dict-item]
        progress=0.5,
        poll_after_seconds=2,
    )
    assert sound(result) == result


@pytest.mark.parametrize(
    "change",
    [
        {"ref": {"id": 7}},
        {"ref": {"id": None}},
        {"upstream_id": 7},
        {"files": (File(url=7),)},  # type: ignore[arg-type]
        {"files": (File(),)},
        {"files": (File(data=7),)},  # type: ignore[arg-type]
        {"files": (File(data="x", url=7),)},  # type: ignore[arg-type]
        {"files": (File(url="http://[::1"),)},
    ],
)
def test_results_that_cannot_be_worked_with(change: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        sound(replace(Result(), **change))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("cost_usd", ["-1", "nan", "inf", "1e30", "free", [], {}]),
        ("progress", ["x", float("nan"), float("inf"), -1, {}]),
        ("poll_after_seconds", ["x", float("nan"), float("inf"), -1, 1e12]),
        ("message", [7, {}, []]),
    ],
)
def test_figures_and_words_that_make_no_sense(name: str, values: list[Any]) -> None:
    for value in values:
        assert getattr(sound(replace(Result(), **{name: value})), name) is None, value


def test_odd_figures_of_use() -> None:
    usage: Any = {"output": -1, "input": "many", "second": 4, "token": float("nan"), "image": 10**30}
    assert sound(replace(Result(), usage=usage)).usage == {"second": 4}
