"""Every door through which something can be made asks the guards, and hands outputs to the bucket of the organization.

The doors are those of the routes: a new route that makes something fails here until it is in the table.
"""

import ast
import base64
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock import commands
from penstock.api.routes import ROUTES
from tests import sounds
from tests.api.http_calls import ServedApi, form, served_api
from tests.api.raw_http import RawResponse
from tests.fake_bucket import fake_bucket
from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.scripted import KEY_ENV, ScriptedProvider, mp4
from tests.fake_providers.server import FakeProvider, route, serve_in_thread, serving
from tests.fake_providers.xai import XAI
from tests.gateway import OpenGateway, sqlite_only, two_providers
from tests.providers.calls import IMAGE_URI
from tests.unit.batches import batch_calls

CHANGED = "grok-imagine-video"
VIDEO_URI = "data:video/mp4;base64," + base64.b64encode(mp4()).decode()
Labs = tuple[ScriptedProvider, ScriptedProvider]
EARLIER = "EARLIER"  # stands for the id of a video that is there


def _chat(prompt: str) -> dict[str, Any]:
    return {"model": "lab/chat", "messages": [{"role": "user", "content": prompt}]}


def _rows(prompt: str) -> list[dict[str, Any]]:
    image = {"model": "image-1", "prompt": prompt, "size": "64x64"}
    chat = _chat(prompt)
    return [
        {"url": "/v1/images/generations", "body": image},
        {"url": "/v1/images/edits", "body": {**image, "model": "edit-1", "image": IMAGE_URI}},
        {"url": "/v1/videos", "body": {"model": "video-1", "prompt": prompt, "seconds": 4}},
        {"url": "/v1/chat/completions", "body": chat},
        {"url": "/v1/responses", "body": {"model": "lab/chat", "input": prompt}},
    ]


def bodies(prompt: str) -> dict[str, Any]:
    """A body for each door that makes something at once; bytes are the file of a form with these fields."""
    image = {"model": "image-1", "prompt": prompt, "size": "64x64"}
    video = {"model": "video-1", "prompt": prompt, "seconds": 4}
    heard = {"model": "lab/listen", "prompt": prompt, "file": sounds.wav(1.0)}
    changed = {"model": CHANGED, "prompt": prompt}
    return {
        "/compat/v1/images/generations": image,
        "/compat/v1/images/edits": {**image, "model": "edit-1", "image": IMAGE_URI},
        "/compat/v1/videos": video,
        "/compat/v1/videos/edits": {**changed, "video": VIDEO_URI},
        "/compat/v1/videos/extensions": {**changed, "video": VIDEO_URI, "seconds": 4},
        f"/compat/v1/videos/{EARLIER}/remix": changed,
        "/compat/openrouter/v1/videos": {"model": "video-1", "prompt": prompt, "duration": 4},
        "/compat/v1/chat/completions": _chat(prompt),
        "/compat/v1/responses": {"model": "lab/chat", "input": prompt},
        "/compat/v1/audio/speech": {"model": "lab/voice", "input": prompt, "voice": "alloy"},
        "/compat/v1/audio/transcriptions": heard,
        "/compat/v1/audio/translations": heard,
        "/compat/v1/audio/generations": {"model": "lab/sound", "prompt": prompt, "seconds": 2},
    }


# Doors that take calls for others: what they start comes through the rows of a batch.
_BATCH_DOORS = {"/v1/batches", "/compat/v1/batches", "/v1/trials"}
_WITHOUT_PROMPT = {"/compat/v1/files", "/v1/providers/{provider}/check"}  # stores; asks what the gateway itself wrote


def _template(path: str) -> str:
    return path.replace(EARLIER, "{id}")


def test_no_route_that_makes_something_is_missing_here() -> None:
    doors = {row.path for row in ROUTES if row.generation}
    assert doors == {_template(path) for path in bodies("")}
    assert {row.path for row in ROUTES if row.drains and not row.generation} == _BATCH_DOORS | _WITHOUT_PROMPT


def test_agents_come_through_the_doors_of_http() -> None:
    """The tools of `penstock mcp` only call a gateway; they cannot make anything without it."""
    tree = ast.parse((Path(commands.__file__).parent / "mcp_server.py").read_text())
    imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert "penstock.commands.gateway_client" in imported
    makers = ("generations", "chat", "speech", "transcription", "gateway", "upstream", "api")
    assert [name for name in imported if name.startswith(tuple(f"penstock.{maker}" for maker in makers))] == []


# --------------------------------------------------------------------------------------------------------------- calls


@asynccontextmanager
async def doors(open_gateway: OpenGateway, **settings: Any) -> AsyncIterator[tuple[ServedApi, XAI]]:
    """A gateway with models for every door: those of the scripted provider, and one that changes videos."""
    xai = XAI()
    async with two_providers() as labs, serving(xai), behind(open_gateway, labs, xai, **settings) as api:
        yield api, xai


@asynccontextmanager
async def behind(open_gateway: OpenGateway, labs: Labs, xai: XAI, **settings: Any) -> AsyncIterator[ServedApi]:
    """A gateway that uses these providers."""
    providers = {"lab": labs[0].settings(), "xai": {"base_url": f"{xai.url}/v1", "key_env": KEY_ENV}}
    async with served_api(open_gateway, labs=labs, providers=providers, **settings) as api:
        yield api


async def made_video(api: ServedApi) -> str:
    video_id: str = (await api.video(model=CHANGED, seconds=8)).json["id"]
    assert (await api.running.wait_for_request(video_id))["status"] == "completed"
    return video_id


async def through(api: ServedApi, path: str, body: Mapping[str, Any], **headers: str) -> RawResponse:
    """The response to a call; a field of bytes makes it a form with a file."""
    if not any(isinstance(value, bytes) for value in body.values()):
        return await api.call("POST", path, body, headers=headers)
    parts = [
        (name, value, "a.wav") if isinstance(value, bytes) else (name, str(value).encode(), None)
        for name, value in body.items()
    ]
    data, content_type = form(*parts)
    return await api.call("POST", path, data, headers={**content_type, **headers})


class Service(FakeProvider):
    """A guard that refuses whatever has a word in its prompt, and keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[dict[str, Any]] = []
        self.word = "gun"

    @route("POST /guard")
    def ask(self, call: Exchange) -> FakeResponse:
        asked = json.loads(call.request.body)
        self.asked.append(asked)
        return FakeResponse({"verdict": "refuse" if self.word in asked["prompt"] else "pass"})


@pytest.fixture
def service() -> Iterator[Service]:
    with serve_in_thread(Service()) as service:
        yield service


# ------------------------------------------------------------------------------------------------------------- prompts


# Doors where the caller either waits or, with this header, starts a job.
_JOB = {"prefer": "respond-async"}
_JOBS = {"/compat/v1/audio/speech", "/compat/v1/audio/transcriptions", "/compat/v1/audio/translations"}


def _ways(path: str) -> list[dict[str, str]]:
    """The headers with which a door is tried."""
    ways = [{}, {"x-service-replay": "mock"}, {"idempotency-key": f"once {path}"}]
    return [*ways, *({**way, **_JOB} for way in ways if path in _JOBS)]


@sqlite_only
async def test_each_door_refuses_a_prompt_before_anything_is_sent_or_held(
    open_gateway: OpenGateway, service: Service
) -> None:
    guards = {"house": {"http": {"url": f"{service.url}/guard"}, "on_hit": "refuse"}}
    async with doors(open_gateway, guards=guards) as (api, xai):
        video_id = await made_video(api)
        made = api.running.lab.submits
        money = await api.running.money()
        for path, body in bodies("a gun").items():
            for headers in _ways(path):
                answered = await through(api, path.replace(EARLIER, video_id), body, **headers)
                assert (path, answered.status, answered.code) == (path, 400, "CONTENT_POLICY_VIOLATION"), answered
                assert "`house`" in answered.json["error"]["message"]
                record = (await api.call("GET", f"/v1/requests/{answered.headers['x-request-id']}")).json
                assert (path, record["status"], record["cost"]) == (path, "rejected", 0)
        assert api.running.lab.submits == made
        assert xai.received("edit_video") + xai.received("extend_video") == []
        assert await api.running.money() == money
        kinds = {asked["kind"] for asked in service.asked}
        assert kinds == {"image", "edit", "video", "chat", "speech", "transcription", "sound"}


@sqlite_only
async def test_rows_of_batches_and_of_trials_are_refused_one_by_one(open_gateway: OpenGateway) -> None:
    rules = {"rules": {"words": ["gun"]}}
    async with doors(open_gateway, guards={"words": rules}) as (api, _):
        lines = [{"custom_id": f"c{number}", "method": "POST", **row} for number, row in enumerate(_rows("a gun"))]
        batch = (await api.call("POST", "/v1/batches", {"requests": lines})).json["id"]
        image = {"model": "image-1", "prompt": "a gun", "size": "64x64"}
        line = {"custom_id": "c", "method": "POST", "url": "/v1/images/generations", "body": image}
        data, content_type = form(("purpose", b"batch", None), ("file", json.dumps(line).encode(), "rows.jsonl"))
        file = await api.call("POST", "/compat/v1/files", data, headers=content_type)
        named = {"input_file_id": file.json["id"], "endpoint": "/v1/images/generations", "completion_window": "24h"}
        openai_batch = (await api.call("POST", "/compat/v1/batches", named)).json["id"]
        compared = {"models": ["image-1", "lab/image-1"], "prompts": ["a gun"], "parameters": {"size": "64x64"}}
        trial = (await api.call("POST", "/v1/trials", compared)).json["batch_id"]
        for batch_id, count in ((batch, len(lines)), (openai_batch, 1), (trial, 2)):
            await batch_calls.wait_for(api.running, batch_id)
            results = (await api.call("GET", f"/v1/batches/{batch_id}/results")).body.decode().splitlines()
            errors = [json.loads(line)["error"] for line in results]
            assert [error["code"] for error in errors] == ["CONTENT_POLICY_VIOLATION"] * count
            assert {error["message"] for error in errors} == {"The guard `words` of this gateway refused the call."}
            for request_id in (json.loads(result)["request_id"] for result in results):
                record = (await api.call("GET", f"/v1/requests/{request_id}")).json
                assert (record["status"], record["cost"]) == ("rejected", 0)
        assert api.running.lab.submits == 0


HIDDEN: dict[str, dict[str, Any]] = {
    "/compat/v1/images/generations": {"negative_prompt": "a gun", "style_words": ["soft", {"a": "a gun"}]},
    "/compat/v1/videos": {"scenes": [{"data": "a gun"}]},
    "/compat/v1/audio/speech": {"instructions": "like a gun"},
    "/compat/v1/chat/completions": {
        "tools": [{"type": "function", "function": {"name": "shoot", "description": "a gun", "parameters": {}}}],
    },
    "/compat/v1/responses": {"instructions": "a gun"},
}


@sqlite_only
async def test_a_prompt_is_not_hidden_in_another_field(open_gateway: OpenGateway) -> None:
    rules = {"rules": {"words": ["gun"]}}
    async with doors(open_gateway, guards={"words": rules}) as (api, _):
        for path, fields in HIDDEN.items():
            for name, value in fields.items():
                answered = await through(api, path, {**bodies("a pear")[path], name: value})
                assert (path, name, answered.status) == (path, name, 400), answered
                assert answered.code == "CONTENT_POLICY_VIOLATION"


# ------------------------------------------------------------------------------------------------------------- outputs

_KEPT = {"media_retention": "1h"}  # makes a file of speech, and of a transcript
_NO_FILES = {"/compat/v1/chat/completions"}
_TRANSCRIPTS = {"/compat/v1/audio/transcriptions", "/compat/v1/audio/translations"}
_NEVER_SEEN = {"/compat/v1/audio/speech", "/compat/v1/audio/generations"}  # guards of outputs hear nothing
_STREAMED = {"/compat/v1/chat/completions", "/compat/v1/responses", "/compat/v1/audio/transcriptions"}
_UPSCALE = {"model": "atelier/enlarge", "image": IMAGE_URI, "scale_factor": 2}


def outputs(prompt: str) -> dict[str, Any]:
    """A body that makes a file for each door that can."""
    made = {path: body for path, body in bodies(prompt).items() if path not in _NO_FILES}
    for path in _JOBS:
        made[path] = {**made[path], **_KEPT}
    tool = {"type": "image_generation", "model": "image-1", "size": "64x64"}
    ask = {"role": "user", "content": "image_generation"}
    made["/compat/v1/responses"] = {"model": "atelier/echo", "input": [ask], "tools": [tool]}
    return made


@sqlite_only
async def test_what_each_door_makes_is_in_the_bucket_after_guards_have_seen_it(
    open_gateway: OpenGateway, service: Service
) -> None:
    kinds = ["image", "edit", "video", "transcription"]
    guards = {"house": {"http": {"url": f"{service.url}/guard"}, "when": "output", "kinds": kinds}}
    settings: Any = {"guards": guards, "egress_allow_cidrs": ("127.0.0.0/8",), "disabled_providers": ()}
    async with fake_bucket() as bucket, doors(open_gateway, **settings) as (api, _):
        await bucket.add_to(api.running, default=True)
        video_id = await made_video(api)
        for path, body in outputs("a pear").items():
            bucket.files.clear()
            service.asked.clear()
            answered = await through(api, path.replace(EARLIER, video_id), body)
            assert answered.status < 300, answered
            await api.running.wait_until_idle()
            assert (path, len(bucket.files)) == (path, 1)
            asked = [question["when"] for question in service.asked]
            unseen = "/audio/" in path and path not in _TRANSCRIPTS
            assert (path, asked) == (path, [] if unseen else ["output"])


def seen(prompt: str, mode: str) -> list[tuple[str, dict[str, Any]]]:
    """A call for each door whose outputs guards see or read: with its stream, an upscale, and jobs, if they have the
    mode of replay. Videos that are mocked are left out, because each is encoded for seconds.
    """
    calls = [(path, body) for path, body in bodies(prompt).items() if path not in _NEVER_SEEN]
    if mode == "mock":
        calls = [(path, body) for path, body in calls if "/videos" not in path]
    jobs = [(path, {**body, **_KEPT}) for path, body in calls if path in _TRANSCRIPTS and mode == "off"]
    streams = [(path, {**body, "stream": True}) for path, body in calls if path in _STREAMED]
    return [*calls, *jobs, *streams, ("/compat/v1/images/edits", _UPSCALE)]


async def end(api: ServedApi, answered: RawResponse) -> str | None:
    """The code with which a call or its job ended; None without an error."""
    if answered.status != 202:
        return answered.code if answered.status >= 400 else None
    code: str | None = (await api.running.wait_for_request(answered.json["id"]))["error_code"]
    return code


@sqlite_only
async def test_no_door_hands_out_what_is_refused_whether_made_recorded_or_mocked(
    open_gateway: OpenGateway, service: Service
) -> None:
    settings: Any = {"egress_allow_cidrs": ("127.0.0.0/8",), "disabled_providers": ()}
    guards = {"house": {"http": {"url": f"{service.url}/guard"}, "when": "output"}}
    service.word = ""  # in every prompt, also in that of an upscale
    xai = XAI()
    async with two_providers() as labs, serving(xai):
        async with behind(open_gateway, labs, xai, **settings) as api:
            video_id = await made_video(api)
            for path, body in seen("a gun", "record"):
                answered = await through(api, path.replace(EARLIER, video_id), body, **{"x-service-replay": "record"})
                assert (path, await end(api, answered)) == (path, None), answered
        async with behind(open_gateway, labs, xai, guards=guards, **settings) as api:
            for mode in ("off", "replay-or-error", "mock"):
                for path, body in seen("a gun", mode):
                    headers = {"x-service-replay": mode}
                    answered = await through(api, path.replace(EARLIER, video_id), body, **headers)
                    ended = (mode, path, await end(api, answered))
                    assert ended == (mode, path, "CONTENT_POLICY_VIOLATION"), (body, answered)
    assert {asked["when"] for asked in service.asked} == {"output"}
    assert {asked["kind"] for asked in service.asked} == {"image", "edit", "video", "chat", "transcription"}


@sqlite_only
async def test_guards_see_the_image_of_an_upscale_which_has_no_prompt(
    open_gateway: OpenGateway, service: Service
) -> None:
    guards = {"house": {"http": {"url": f"{service.url}/guard", "sends_images": True}, "kinds": ["edit"]}}
    async with doors(open_gateway, guards=guards, disabled_providers=()) as (api, _):
        assert (await through(api, "/compat/v1/images/edits", _UPSCALE)).status == 200
    [asked] = service.asked
    assert (asked["kind"], asked["prompt"], asked["images"][0]["content_type"]) == ("edit", "", "image/png")
