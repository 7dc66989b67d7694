"""Our function for Open WebUI, loaded as Open WebUI loads it; tests/servers runs it in Open WebUI itself."""

import asyncio
import json
import types
from collections.abc import Callable
from typing import Any

import pytest

from penstock.client.files import input_url
from tests.fake_providers.scripted import png
from tests.ports import unused_port
from tests.stories.processes import ROOT, Serving

FUNCTION = ROOT / "integrations" / "open-webui" / "penstock_function.py"


class Chat:
    """What Open WebUI gives to a function: somewhere to show its progress, and a user who answers."""

    def __init__(self, module: Any, served: Serving, answer: Any = True) -> None:
        self.pipe = module.Pipe()
        self.pipe.valves = module.Pipe.Valves(url=served.url, key=served.key, ask_above_usd=0.01)
        self.statuses: list[str] = []
        self.asked: list[str] = []
        self.answer = answer
        self.stored: list[tuple[bytes, str]] = []
        self.on_status: Callable[[str], None] = self.statuses.append

        async def store(_: Any, content: bytes, media_type: str) -> str:
            self.stored.append((content, media_type))
            return f"/api/v1/files/{len(self.stored)}/content"

        module.Page._store = store

    async def emit(self, event: Any) -> None:
        assert event["type"] == "status"
        self.on_status(event["data"]["description"])

    async def ask(self, event: Any) -> Any:
        assert event["type"] == "confirmation"
        self.asked.append(event["data"]["message"])
        return self.answer

    async def say(self, model: str, content: Any, message_id: str = "m", task: str | None = None) -> str:
        answer = await self.pipe.pipe(
            {"model": f"penstock.{model}", "messages": [{"role": "user", "content": content}]},
            __user__={"id": "u_1"},
            __metadata__={"chat_id": "c_1", "message_id": message_id},
            __task__=task,
            __event_emitter__=self.emit,
            __event_call__=self.ask,
        )
        return str(answer)


@pytest.fixture
def module() -> Any:
    module = types.ModuleType("function_penstock")
    exec(FUNCTION.read_text(), module.__dict__)  # noqa: S102 - what Open WebUI does
    return module


async def test_the_models_that_make_something_are_listed(module: Any, served: Serving) -> None:
    chat = Chat(module, served)
    listed = {model["id"] for model in await chat.pipe.pipes()}
    assert {"atelier/sketch", "atelier/clip", "atelier/voice"} <= listed
    assert "atelier/echo" not in listed
    chat.pipe.valves.models = "clip, voice"
    assert {model["id"] for model in await chat.pipe.pipes()} == {"atelier/clip", "atelier/voice"}
    chat.pipe.valves.key = "pk_wrong"
    assert "AUTHENTICATION_FAILED" in (await chat.pipe.pipes())[0]["name"]


async def test_an_image_is_made_with_the_fields_in_the_message_and_its_cost_is_told(
    module: Any, served: Serving
) -> None:
    chat = Chat(module, served)
    assert await chat.say("atelier/sketch", "a [red] fox --size 256x256 --n 2", "image") == (
        "![a  red  fox](/api/v1/files/1/content)\n\n![a  red  fox](/api/v1/files/2/content)"
    )
    assert [media_type for _, media_type in chat.stored] == ["image/png"] * 2
    assert chat.statuses[0] == "atelier/sketch: up to $0.002"
    assert chat.statuses[-1].startswith("atelier/sketch, $0.002, request req_")
    [row] = served.call("GET", "/v1/requests?user=u_1&session_id=c_1&model=atelier/sketch").json["data"]
    assert row["id"] in chat.statuses[-1]


async def test_the_same_message_is_paid_for_once(module: Any, served: Serving) -> None:
    chat = Chat(module, served)
    for _ in range(2):
        await chat.say("atelier/clip", "once --seconds 1 --size 320x180", "once")
    told = [status.rpartition(" ")[2] for status in chat.statuses if " request " in status]
    assert (len(told), len(set(told))) == (2, 1)


async def test_the_user_is_asked_before_what_costs_more(module: Any, served: Serving) -> None:
    chat = Chat(module, served, answer=False)
    assert await chat.say("atelier/clip", "a walk --seconds 8 --n 2") == "Nothing was made, and nothing was charged."
    assert chat.asked == ["atelier/clip may cost up to $0.016."]
    chat.answer = {"error": "Client session disconnected."}
    assert "nobody to ask" in await chat.say("atelier/clip", "a walk --seconds 8 --n 2")
    assert served.call("GET", "/v1/requests?search=walk").json["data"] == []


async def test_attached_images_are_edited_enlarged_or_moved(module: Any, served: Serving) -> None:
    chat = Chat(module, served)
    image = {"type": "image_url", "image_url": {"url": input_url(png(64, 64))}}
    for model, text, shown in (
        ("atelier/retouch", "at night --size 256x256", "![at night]("),
        ("atelier/enlarge", "--scale_factor 2", "![]("),
        ("atelier/clip", "waves --seconds 1 --size 320x180", "<video>/api"),
    ):
        assert (await chat.say(model, [{"type": "text", "text": text}, image], model)).startswith(shown)
    assert "needs an image" in await chat.say("atelier/retouch", "at night")
    assert "takes no images" in await chat.say("atelier/sketch", [{"type": "text", "text": "a fox"}, image])


async def test_a_text_is_spoken(module: Any, served: Serving) -> None:
    chat = Chat(module, served)
    assert (
        await chat.say("atelier/voice", "Good morning. --voice nova", "v") == "<audio>/api/v1/files/1/content</audio>"
    )
    assert chat.stored[0][1] == "audio/mpeg"


async def test_titles_and_tags_make_nothing(module: Any, served: Serving) -> None:
    chat = Chat(module, served)
    title = await chat.say("atelier/sketch", "a quiet harbour --n 4", task="title_generation")
    assert json.loads(title) == {"title": "a quiet harbour"}
    assert json.loads(await chat.say("atelier/sketch", "x", task="tags_generation"))["tags"] == []
    assert served.call("GET", "/v1/requests?search=harbour").json["data"] == []


async def test_what_is_refused_is_told(module: Any, served: Serving) -> None:
    chat = Chat(module, served)
    assert "(INVALID_REQUEST)" in await chat.say("atelier/sketch", "a fox --n 99")
    assert "not in the gateway's list" in await chat.say("atelier/nothing", "a fox")
    assert await chat.say("atelier/clip", "[fail] --seconds 1", "fail") != ""
    assert chat.statuses[-1] == "Failed"
    chat.pipe.valves.url = f"http://127.0.0.1:{unused_port()}"
    module.PAUSES = ()
    assert "No gateway answers" in await chat.say("atelier/sketch", "a fox")


async def test_a_user_who_stops_it_cancels_the_video(module: Any, served: Serving) -> None:
    chat = Chat(module, served)
    shown = asyncio.Event()
    chat.on_status = lambda text: shown.set() if text.endswith(" %") else None
    task = asyncio.create_task(chat.say("atelier/clip", "a stopped walk --seconds 8", "stop"))
    await shown.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await ended(served, "stopped") == "cancelled"


async def test_a_user_who_stops_it_before_the_gateway_has_answered_cancels_the_video_too(
    module: Any, served: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat, accepted, answered = Chat(module, served), asyncio.Event(), asyncio.Event()
    send = module.Gateway._send

    async def send_slowly(self: Any, method: str, path: str, body: Any = None, headers: Any = None) -> Any:
        answer = await send(self, method, path, body, headers)
        if method == "POST" and "dryRun" not in path:
            accepted.set()
            await answered.wait()
        return answer

    monkeypatch.setattr(module.Gateway, "_send", send_slowly)
    task = asyncio.create_task(chat.say("atelier/clip", "an early halt --seconds 8", "halt"))
    await accepted.wait()
    task.cancel()
    answered.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await ended(served, "halt") == "cancelled"


async def ended(served: Serving, word: str) -> str:
    """The status that the video with this word in its prompt ends with."""
    status = "pending"
    while status in ("pending", "processing"):
        found = await asyncio.to_thread(served.call, "GET", f"/v1/requests?search={word}&kind=video")
        [status] = [row["status"] for row in found.json["data"]]
    return status


@pytest.mark.parametrize(
    ("text", "prompt", "fields"),
    [
        ("a fox", "a fox", {}),
        ("a fox -- in snow", "a fox -- in snow", {}),
        ('a fox --size 16:9 --negative_prompt "no snow"', "a fox", {"size": "16:9", "negative_prompt": "no snow"}),
        ("a fox --seed 7 --generate_audio false", "a fox", {"seed": 7, "generate_audio": False}),
        ("it's a fox --n 2", "it's a fox", {"n": 2}),
    ],
)
def test_fields_follow_the_prompt(module: Any, text: str, prompt: str, fields: Any) -> None:
    assert module.split_fields(text) == (prompt, fields)
