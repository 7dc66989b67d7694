"""What the interface promises about outputs: as many as asked for, and nothing left of them after a purge."""

import base64
from collections.abc import Callable
from typing import Any

import pytest

from penstock import providers
from penstock.errors import InvalidRequest
from penstock.generations import validate
from penstock.models.description import modes
from penstock.providers.openai_compatible import OPERATIONS
from penstock.providers.spec import Model
from penstock.schema import Call, Caller, Request
from penstock.settings import Settings
from penstock.upstream import checks
from penstock.values import OrgId
from tests.api.http_calls import checked_json, served_api
from tests.fake_providers import faults
from tests.fake_providers.scripted import png
from tests.fake_providers.server import Act, FakeCall, deliver
from tests.gateway import OpenGateway, files_with, sqlite_only

MODES = {"text-to-image", "image-edit", "upscale", "text-to-video", "image-to-video", "chat"}
# Of models that take a video or speak, which the interface does not have.
MODES |= {"video-to-video", "video-extension", "text-to-speech", "text-to-sound", "text-to-music"}
MODES |= {"transcription", "translation"}


def delivering(count: int) -> Act:
    """A server that ignores `n` and always makes so many images."""

    async def act(call: FakeCall) -> None:
        made = call.accept()
        assert isinstance(made.json, dict)
        made.json["data"] = (made.json["data"] * count)[:count]
        await deliver(call, made)

    return act


# ------------------------------------------------------------------------------------------------------------ all of n


@sqlite_only
async def test_images_that_a_server_did_not_deliver_are_asked_for_again(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        api.running.lab.images.always(delivering(1))
        result = checked_json("ImageResult", await api.image(n=3))
        assert len(result["data"]) == 3
        assert [request.fields["n"] for request in api.running.lab.images.received] == [3, 1, 1]
        assert result["metadata"]["cost"] == 0.12
        assert "missing" not in result["metadata"]
        assert [attempt["count"] for attempt in result["metadata"]["attempts"]] == [1, 1, 1]


@sqlite_only
async def test_each_call_for_a_part_of_the_images_has_a_seed_of_its_own(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        api.running.lab.images.always(delivering(1))
        await api.image(n=3, seed=7)
        assert [(request.fields["n"], request.fields["seed"]) for request in api.running.lab.images.received] == [
            (3, 7),
            (1, 8),
            (1, 9),
        ]


@sqlite_only
async def test_several_videos_of_the_built_in_model_differ(open_gateway: OpenGateway) -> None:
    async with open_gateway(disabled_providers=()) as running:
        created = await running.video(model="atelier/clip", prompt="a village", seconds=1, size="64x64", n=2)
        await running.wait_for_video(created.json["id"])
        digests = {row["sha256"] for row in await running.rows("SELECT sha256 FROM media")}
        assert len(digests) == 2


@sqlite_only
async def test_the_next_provider_makes_what_the_first_did_not_deliver(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway, annex=True) as api:
        api.running.lab.images.next(delivering(1), faults.broken, faults.broken)
        result = checked_json("ImageResult", await api.image(n=3))
        assert len(result["data"]) == 3
        made = [
            (attempt["provider"], attempt["count"])
            for attempt in result["metadata"]["attempts"]
            if attempt["outcome"] == "made"
        ]
        assert made == [("lab", 1), ("annex", 2)]
        assert all(attempt["upstream_id"] for attempt in result["metadata"]["attempts"] if attempt["outcome"] == "made")


@sqlite_only
async def test_a_result_says_how_many_outputs_are_missing(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        api.running.lab.images.next(delivering(1), faults.broken, faults.broken)
        result = checked_json("ImageResult", await api.image(n=3))
        assert (len(result["data"]), result["metadata"]["missing"]) == (1, 2)
        assert result["metadata"]["cost"] == 0.04
        api.running.lab.videos.next(faults.ok, faults.blocked)
        started = (await api.video(n=2)).json["id"]
        video = await api.running.wait_for_video(started)
        assert video["metadata"]["missing"] == 1


@sqlite_only
async def test_a_configured_model_can_be_declared_to_make_one_image_a_call(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        table = api.running.lab.settings()
        table["models"][0]["n"] = 1
        async with served_api(open_gateway, labs=(api.running.lab, api.running.annex), providers={"lab": table}) as one:
            result = checked_json("ImageResult", await one.image(n=3))
            assert len(result["data"]) == 3
            assert ["n" in request.fields for request in api.running.lab.images.received] == [False] * 3


# ------------------------------------------------------------------------------------------------------------ catalogue


def each_model(task: str) -> list[Model]:
    return [model for provider in providers.discover() for model in provider.models if model.op.task == task]


def failures(models: list[Model], check: Callable[[Model], None]) -> list[str]:
    found = []
    for model in models:
        try:
            check(model)
        except InvalidRequest as problem:
            found.append(f"{model.id}: {problem.message}")
    return found


def test_every_upscale_model_takes_a_factor_and_needs_no_prompt() -> None:
    """Where a model knows several factors, one of them is taken; a model without any ignores it."""

    def check(model: Model) -> None:
        row = model.op.param("scale_factor")
        factor = row.one_of[0] if row and row.one_of else 2
        for values in ({}, {"scale_factor": factor}):
            checks.check(model, Request(task="upscale", model=model.id, values=dict(values)))

    own_server = Model(id="own", upstream="own", op=OPERATIONS["upscale"], prices=())
    assert failures([*each_model("upscale"), own_server], check) == []


def test_a_factor_for_other_models_is_ignored_whatever_it_is() -> None:
    def check(model: Model) -> None:
        checks.check(model, Request(task="edit", model=model.id, values={"prompt": "x", "scale_factor": 99}))

    assert failures(each_model("edit"), check) == []


def test_every_upscale_model_has_limits_for_its_factor() -> None:
    unlimited = [
        model.id
        for model in each_model("upscale")
        if (row := model.op.param("scale_factor")) and row.handling != "ignored" and not row.one_of
        if row.low is None or row.high is None
    ]
    assert unlimited == []


def test_an_empty_negative_prompt_asks_for_nothing() -> None:
    def check(model: Model) -> None:
        call = Call(
            id="", caller=Caller(OrgId(""), ""), endpoint="", at_ms=0, started=0.0, json={**body, "model": model.id}
        )
        checks.check(model, validate.video(call, Settings()).request)

    body: dict[str, Any] = {"prompt": "x", "negative_prompt": ""}

    assert failures(each_model("video"), check) == []


def test_models_have_only_the_documented_modes() -> None:
    assert {mode for provider in providers.discover() for model in provider.models for mode in modes(model)} <= MODES


# ---------------------------------------------------------------------------------------------------------------- purge

CANARY = "canary-1c7f0d"
REPLAY = "X-Service-Replay"


@sqlite_only
@pytest.mark.parametrize("mode", ["record", "replay-or-record", "replay-or-live", "mock", "off"])
async def test_a_purge_leaves_the_prompt_nowhere(open_gateway: OpenGateway, mode: str) -> None:
    """For images, edits, videos and chat, with each mode of replay; also when the request was refused or failed."""
    async with served_api(open_gateway, disabled_providers=(), payloads="all", worker=True) as api:
        running = api.running
        headers = {REPLAY: mode}
        image = {"image_url": f"data:image/png;base64,{base64.b64encode(png(64, 64)).decode()}"}
        for path, body in (
            ("images/generations", {"model": "image-1", "size": "64x64", "output_format": "webp"}),
            ("images/edits", {"model": "edit-1", "size": "64x64", "image": image}),
            ("videos", {"model": "video-1", "seconds": 1, "metadata": {"who": CANARY}}),
        ):
            called = await api.call("POST", f"/compat/v1/{path}", {**body, "prompt": f"of {CANARY}"}, headers=headers)
            assert called.status in (200, 202), called
            request_id = called.json["id"]
            await running.wait_for_request(request_id)
            purged = await api.call("DELETE", f"/v1/requests/{request_id}/payloads")
            assert checked_json("Purged", purged)["purged"], path
        running.lab.images.next(faults.error(400, f"I will not draw {CANARY}."))
        failed = await api.image(prompt=CANARY)
        chat = await api.chat(messages=[{"role": "user", "content": CANARY}])
        assert chat.status == 200
        for called in (failed, chat):
            request_id = called.headers["x-request-id"]
            await running.wait_for_request(request_id)
            assert (await api.call("DELETE", f"/v1/requests/{request_id}/payloads")).status == 200
        assert await running.tables_with(CANARY) == []
        assert files_with(running.gateway.settings.data, CANARY) == []


@sqlite_only
async def test_a_purged_video_still_has_its_length_and_its_size(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        video_id = (await api.video(seconds=4, size="1280x720")).json["id"]
        before = await api.running.wait_for_video(video_id)
        await api.running.purge(video_id)
        after = checked_json("Video", await api.call("GET", f"/compat/v1/videos/{video_id}"))
        assert (after["seconds"], after["size"]) == (before["seconds"], "1280x720")
        assert (after["prompt"], after["output"]) == ("", None)
