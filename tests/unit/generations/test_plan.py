"""Every replay mode with and without a recording, on every endpoint: what is served, stored and sent."""

import asyncio
import base64
import io
from collections.abc import Mapping
from typing import Any

import av
import pytest
from PIL import Image

from penstock.errors import InvalidRequest, ModelNotFound, RecordingNotFound
from penstock.generations import endpoints, retrieve
from penstock.recordings import recordings
from penstock.schema import Response
from tests.fake_providers.scripted import png
from tests.gateway import OpenGateway, RunningGateway, caller_with, sqlite_only

pytestmark = sqlite_only

BODIES: Mapping[str, dict[str, Any]] = {
    "image": {"model": "image-1", "prompt": "a pear", "size": "64x64"},
    "edit": {
        "model": "edit-1",
        "prompt": "add a hat",
        "size": "64x64",
        "image": "data:image/png;base64," + base64.b64encode(png(32, 32)).decode(),
    },
    "video": {"model": "video-1", "prompt": "a train", "seconds": 4, "size": "128x128"},
}
# By mode: the source of the result with a recording, and without one.
MATRIX = {
    "off": ("live", "live"),
    "record": ("recorded", "recorded"),
    "replay-or-mock": ("replayed", "mocked"),
    "replay-or-error": ("replayed", "error"),
    "replay-or-live": ("replayed", "live"),
    "replay-or-record": ("replayed", "recorded"),
    "mock": ("mocked", "mocked"),
}
MATCHES = {
    "standard": {},
    "strict": {"-match": "strict"},
    "specific": {"-match": "specific", "-fields": "model,size"},
    "pinned": {"-match": "pinned"},
}


async def send(running: RunningGateway, kind: str, headers: Mapping[str, str], **body: Any) -> Response:
    named = {f"x-service-replay{name}": value for name, value in headers.items()}
    call = running.call({**BODIES[kind], **body}, endpoint=f"/{kind}", headers=named)
    endpoint = {"image": endpoints.make_images, "edit": endpoints.edit_images, "video": endpoints.start_video}[kind]
    return await endpoint(running.gateway, call)


async def ended(running: RunningGateway, kind: str, response: Response) -> Response:
    """The response with the result."""
    if kind != "video":
        return response
    await running.wait_for_request(response.json["id"])
    return await retrieve.video(running.gateway, running.call(id=response.json["id"]))


async def recording(running: RunningGateway, kind: str, **body: Any) -> str:
    response = await ended(running, kind, await send(running, kind, {"": "record"}, **body))
    return response.headers["x-service-replay-recording"]


# How calls are matched does not depend on the endpoint: two of the matches are tested with images only.
KINDS = [(kind, match) for kind in BODIES for match in MATCHES if kind == "image" or match in ("standard", "pinned")]


@pytest.mark.parametrize(("kind", "match"), KINDS)
@pytest.mark.sweep(3)
async def test_each_mode_with_and_without_a_recording(open_gateway: OpenGateway, kind: str, match: str) -> None:
    """Each case is that of an organization of its own, which has no other recordings."""
    async with open_gateway() as running:
        for mode, (with_recording, without) in MATRIX.items():
            for found, expected in ((True, with_recording), (False, without)):
                running.caller = await running.create_caller_in_new_org()
                recorded = await recording(running, kind) if found else None
                try:
                    await check_mode(running, kind, mode, match, recorded, expected)
                except AssertionError as failure:
                    failure.add_note(f"mode {mode}, {'with' if found else 'without'} a recording")
                    raise


async def check_mode(
    running: RunningGateway, kind: str, mode: str, match: str, recorded: str | None, expected: str
) -> None:
    """Make a call and check where its result came from, what was sent, charged and stored."""
    headers = {"": mode, **MATCHES[match]}
    if match == "pinned":
        headers["-recording"] = recorded or "rec_" + "0" * 32
    sent, money = len(running.lab.invoice), await running.money()
    stored = len((await running.gateway.recordings.page(running.caller.org_id)).data)
    if expected == "error":
        with pytest.raises(RecordingNotFound):
            await send(running, kind, headers)
        assert (len(running.lab.invoice), await running.money()) == (sent, money)
        return
    response = await ended(running, kind, await send(running, kind, headers))
    assert response.headers["x-service-replay-status"] == expected
    serves_live = expected in ("live", "recorded")
    assert len(running.lab.invoice) == sent + serves_live
    assert (await running.money() != money) is serves_live
    now_stored = len((await running.gateway.recordings.page(running.caller.org_id)).data)
    assert now_stored == stored + (expected == "recorded")
    if expected == "replayed":
        assert response.headers["x-service-replay-recording"] == recorded
        assert response.json["metadata"]["cost"] == 0
    assert (await running.record(response.json["id"]))["status"] == "completed"


async def test_the_newest_match_is_replayed_and_only_to_its_organization(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        await recording(running, "image")
        running.clock.advance(1)
        newest = await recording(running, "image")
        response = await send(running, "image", {"": "replay-or-error"})
        assert response.headers["x-service-replay-recording"] == newest
        stranger = await running.create_caller_in_new_org()
        running.caller = stranger
        with pytest.raises(RecordingNotFound):
            await send(running, "image", {"": "replay-or-error", "-match": "pinned", "-recording": newest})


async def test_a_standard_match_works_across_providers_of_a_model(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        await recording(running, "image", model="annex/image-1")
        response = await send(running, "image", {"": "replay-or-error"}, model="lab/image-1")
        assert response.json["metadata"]["provider"] == "annex"


@pytest.mark.parametrize(("size", "form", "n"), [("96x64", "png", 1), ("64x64", "webp", 3), ("50x70", "jpeg", 2)])
async def test_mocked_images_have_the_requested_format_and_size(
    open_gateway: OpenGateway, size: str, form: str, n: int
) -> None:
    async with open_gateway() as running:
        fields = {"size": size, "output_format": form, "n": n, "response_format": "b64_json"}
        response = await send(running, "image", {"": "mock"}, **fields)
        assert len(response.json["data"]) == n
        for image in response.json["data"]:
            with Image.open(io.BytesIO(base64.b64decode(image["b64_json"]))) as decoded:
                assert (f"{decoded.width}x{decoded.height}", decoded.format) == (size, form.upper())
        assert running.lab.invoice == []


async def test_a_mocked_video_has_the_requested_length_and_size(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        response = await send(running, "video", {"": "mock"}, seconds=2, size="128x96", n=2)
        assert response.status == 202
        done = await ended(running, "video", response)
        assert len(done.json["outputs"]) == 2
        files = await running.gateway.store.all("list_media", request_id=done.json["id"], org_id=running.caller.org_id)
        data = await running.gateway.media.read(files[0]["id"], files[0]["size_bytes"])
        with av.open(io.BytesIO(data), "r") as video:
            stream = video.streams.video[0]
            assert (stream.width, stream.height) == (128, 96)
            assert abs(float(video.duration or 0) / av.time_base - 2) < 0.3


async def test_a_model_whose_provider_is_off_can_be_mocked_but_not_an_unknown_one(
    open_gateway: OpenGateway,
) -> None:
    async with open_gateway(disabled_providers=("atelier", "lab")) as running:
        response = await send(running, "image", {"": "mock"})
        assert response.json["metadata"]["provider"] == "atelier"
        with pytest.raises(ModelNotFound):
            await send(running, "image", {"": "mock"}, model="nobody-has-this")


@pytest.mark.parametrize("jump_seconds", [0, 3600, -3600])
async def test_a_replayed_video_is_completed_after_its_latency(open_gateway: OpenGateway, jump_seconds: int) -> None:
    """Also when the wall clock is set meanwhile."""
    async with open_gateway() as running:
        await recording(running, "video")
        response = await send(running, "video", {"": "replay-or-error", "-latency": "1000,5000"})
        assert (response.json["status"], response.headers["x-service-replay-status"]) == ("queued", "replayed")
        due = running.clock.monotonic() + 5

        async def waits() -> bool:
            return any(abs(at - due) < 0.1 for at, _, _ in running.clock._sleepers)

        await running.wait_until(waits, 0)
        running.clock.jump(jump_seconds)
        running.clock.advance(4.9)
        for _ in range(100):
            await asyncio.sleep(0)
        assert (await running.get_video(response.json["id"]))["status"] == "queued"
        running.clock.advance(0.1)
        await running.wait_for_request(response.json["id"], step_seconds=0)  # no more time passes


@pytest.mark.parametrize(
    ("name", "limit"), [("_SEARCHED_MAX", 2), ("_SEARCHED_BYTES_MAX", 1), ("SHOWN_REQUEST_BYTES", 10)]
)
async def test_a_specific_match_reads_few_recordings(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch, name: str, limit: int
) -> None:
    """They may be many and long, and a replay costs nothing."""
    monkeypatch.setattr(recordings, "_SEARCHED_PAGE", 1)
    specific = {"": "replay-or-error", "-match": "specific", "-fields": "size"}
    async with open_gateway() as running:
        for size in ("64x64", "96x96", "128x128"):
            await send(running, "image", {"": "record"}, size=size)
            running.clock.advance(1)
        await send(running, "image", specific, size="64x64")
        monkeypatch.setattr(recordings, name, limit)
        with pytest.raises(RecordingNotFound):
            await send(running, "image", specific, size="64x64")


async def test_the_inputs_of_a_call_have_a_limit_together(open_gateway: OpenGateway) -> None:
    """They may be URLs of many large files, and are in memory before anything is held; also in a dry run."""
    image = BODIES["edit"]["image"]
    async with open_gateway(form_bytes=2 * len(png(32, 32))) as running:
        await send(running, "edit", {}, image=[image] * 2)
        for query in ({}, {"dryRun": "true"}):
            call = running.call({**BODIES["edit"], "image": [image] * 3}, endpoint="/edit", query=query)
            with pytest.raises(InvalidRequest, match="bytes together") as caught:
                await endpoints.edit_images(running.gateway, call)
            assert caught.value.param == "image"


async def test_a_replayed_image_sends_its_bytes_when_they_are_due(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        await recording(running, "image")
        response = await send(running, "image", {"": "replay-or-error", "-latency": "100,900"})
        assert response.chunks is not None
        started = running.clock.now_ms()
        moments: list[int] = []

        async def read() -> None:
            assert response.chunks is not None
            async for _ in response.chunks:
                moments.append(running.clock.now_ms() - started)

        task = asyncio.create_task(read())

        async def met() -> bool:
            return task.done()

        await running.wait_until(met, 0.01)
        assert moments == pytest.approx([100, 900], abs=30)


async def test_a_default_mode_of_the_key_replays_without_a_header(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        pinned = await recording(running, "image")
        running.caller = caller_with(running.caller, replay_mode="replay-or-error")
        assert (await send(running, "image", {})).headers["x-service-replay-recording"] == pinned


async def test_a_wrong_replay_header_is_refused_without_a_mode_and_in_a_dry_run(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        for query in ({}, {"dryRun": "true"}):
            wrong = running.call(
                BODIES["image"], endpoint="/image", headers={"x-service-replay-match": "close"}, query=query
            )
            with pytest.raises(InvalidRequest, match="X-Service-Replay-Match must be one of"):
                await endpoints.make_images(running.gateway, wrong)


async def test_a_dry_run_ignores_replay(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        named = {"x-service-replay": "replay-or-error"}
        made = running.call(BODIES["image"], endpoint="/image", headers=named, query={"dryRun": "true"})
        response = await endpoints.make_images(running.gateway, made)
        assert response.json["estimated"] is True
        assert await running.records() == []
