"""Edits, extensions and remixes become videos with an input."""

from typing import Any

import msgspec
import pytest

from penstock.errors import InvalidRequest, NotFound, PayloadTooLarge
from penstock.fields import UploadedFile
from penstock.generations import changed_videos
from penstock.generations.changed_videos import edit_video, extend_video, load_source, remix_video
from penstock.schema import Call, Response
from tests.gateway import OpenGateway, RunningGateway, sqlite_only

pytestmark = sqlite_only
URI = "data:video/mp4;base64,AAAA"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """The calls for videos that the tested calls became."""
    calls: list[Call] = []

    async def note(_: Any, call: Call) -> Response:
        calls.append(call)
        return Response()

    monkeypatch.setattr(changed_videos, "start_video", note)
    return calls


async def completed(running: RunningGateway) -> str:
    video_id: str = (await running.video()).json["id"]
    await running.wait_for_video(video_id)
    return video_id


async def test_a_video_by_url_or_data_uri_is_an_input_with_a_role(
    open_gateway: OpenGateway, started: list[Call]
) -> None:
    async with open_gateway() as running:
        body = {"model": "m", "prompt": "snow", "video": URI}
        await edit_video(running.gateway, running.call(body))
        await extend_video(running.gateway, running.call({**body, "seconds": "4"}))
    assert [call.json["input_reference"] for call in started] == [{"edit": URI}, {"extend": URI}]
    assert started[1].json["seconds"] == "4"


async def test_a_file_in_a_form_keeps_the_form(open_gateway: OpenGateway, started: list[Call]) -> None:
    async with open_gateway() as running:
        file = UploadedFile(b"0", "fox.mp4", "video/mp4")
        form = (("prompt", "snow"), ("video", file), ("model", "m"))
        await edit_video(running.gateway, msgspec.structs.replace(running.call(), is_form=True, form=form))
    assert started[0].form == (("prompt", "snow"), ("model", "m"), ("input_reference[edit]", file))


async def test_an_earlier_video_is_read_and_its_model_is_the_default(
    open_gateway: OpenGateway, started: list[Call]
) -> None:
    async with open_gateway() as running:
        video_id = await completed(running)
        named = {"prompt": "snow", "video": {"id": video_id}}
        await edit_video(running.gateway, running.call(named))
        await edit_video(running.gateway, running.call({**named, "model": "m"}))
        form = (("prompt", "snow"), ("video[id]", video_id))
        await edit_video(running.gateway, msgspec.structs.replace(running.call(), is_form=True, form=form))
        await remix_video(running.gateway, running.call({"prompt": "snow"}, id=video_id))
        stored = await load_source(running.gateway, video_id, running.caller.org_id)
    assert [call.json["model"] for call in started] == ["video-1", "m", "video-1", "video-1"]
    assert [call.json["input_reference"]["edit"].data for call in started] == [stored.file.data] * 4
    assert not started[2].is_form
    bodies = [call.body for call in started]
    assert bodies[0] == bodies[2] == bodies[3] != bodies[1], "recordings know the same call again"


async def test_videos_of_others_and_large_ones_are_no_inputs(open_gateway: OpenGateway, started: list[Call]) -> None:
    async with open_gateway(input_video_bytes=100) as running:
        video_id = await completed(running)
        stranger = await running.create_caller_in_new_org()
        with pytest.raises(NotFound):
            await remix_video(running.gateway, running.call({"prompt": "snow"}, caller=stranger, id=video_id))
        with pytest.raises(PayloadTooLarge, match="an input video may have 100"):
            await remix_video(running.gateway, running.call({"prompt": "snow"}, id=video_id))
    assert started == []


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({}, "video"),
        ({"video": {"file_id": "x"}}, "video"),
        ({"video": {"id": 5}}, "video"),
        ({"video": [URI, URI]}, "video"),
        ({"video": URI, "input_reference": URI}, "input_reference"),
    ],
)
async def test_other_inputs_are_refused_by_name(open_gateway: OpenGateway, fields: dict[str, Any], param: str) -> None:
    async with open_gateway() as running:
        with pytest.raises(InvalidRequest) as caught:
            await edit_video(running.gateway, running.call({"prompt": "snow", "model": "video-1", **fields}))
        assert caught.value.param == param
        with pytest.raises(InvalidRequest) as caught:
            await remix_video(running.gateway, running.call({"prompt": "snow", "video": URI}, id="req_1"))
        assert caught.value.param == "video"
