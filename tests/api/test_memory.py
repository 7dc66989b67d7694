"""What a call had in memory is free when it has ended, and does not wait for the garbage collector, which runs seldom.

An error refers to the frames that it passed, and they refer to the body of the call. If one of them also refers to the
error, all of this is garbage that only the collector finds.
"""

import asyncio
import base64
import gc
import io
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from PIL import Image

from penstock.api.asgi import AsgiApp
from tests.api.http_calls import ServedApi
from tests.api.raw_http import request, serving, until
from tests.fake_providers import faults
from tests.fake_providers.server import Act, Endpoint
from tests.gateway import OpenGateway, sqlite_only, two_providers
from tests.many_cases import many_cases
from tests.ports import unused_port

pytestmark = sqlite_only

LONG = 20_000  # bytes, more than everything else that a call leaves behind
TEXT = "a canary sings " * 20_000
CHAT = {"model": "lab/chat", "messages": [{"role": "user", "content": TEXT}], "max_tokens": 20}
RESPONSE = {"model": "lab/chat", "input": TEXT, "max_output_tokens": 20}
IMAGE = {"model": "image-1", "prompt": "a canary sings " * 2000, "size": "64x64"}
TOOL = {
    "model": "atelier/echo",
    "input": IMAGE["prompt"],
    "tools": [{"type": "image_generation", "model": "image-1"}],
    "tool_choice": {"type": "image_generation"},
}
PATHS = {
    "chat": "chat/completions",
    "response": "responses",
    "tool": "responses",
    "image": "images/generations",
    "edit": "images/edits",
}


def edit_body() -> dict[str, Any]:
    file = io.BytesIO()
    Image.frombytes("RGB", (256, 256), random.Random(1).randbytes(3 * 256 * 256)).save(file, "PNG", compress_level=1)
    image = "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
    return {"model": "edit-1", "prompt": "add a hat", "size": "64x64", "image": image}


@contextmanager
def collector_off() -> Iterator[None]:
    gc.collect()
    gc.freeze()  # what there is from other tests is not looked through for each case
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def long_garbage() -> list[str]:
    """What only the collector would free of long texts and files, by the kinds of objects that refer to them."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    gc.set_debug(0)
    found = [
        f"{type(thing).__name__} {getattr(getattr(thing, 'f_code', None), 'co_qualname', '')}"
        for thing in gc.garbage
        for part in gc.get_referents(thing)
        if isinstance(part, str | bytes | bytearray) and len(part) > LONG
    ]
    gc.garbage.clear()
    gc.collect()
    return sorted(set(found))


@asynccontextmanager
async def served(open_gateway: OpenGateway) -> AsyncIterator[ServedApi]:
    """A gateway with the provider `lab`, and with one that nobody can connect to."""
    async with two_providers() as labs:
        table = labs[0].settings()
        away = {**table, "base_url": f"http://127.0.0.1:{unused_port()}/v1"}
        models = [{**model, "id": f"away/{model['task']}"} for model in table["models"]]
        providers = {"lab": table, "away": {**away, "models": models}, "annex": labs[1].settings(priority=1)}
        async with (
            open_gateway(labs=labs, providers=providers, disabled_providers=()) as running,
            serving(AsgiApp(running.gateway), running.gateway.settings) as server,
        ):
            yield ServedApi(running, server)


async def finished(api: ServedApi, task: "asyncio.Task[Any]") -> None:
    """Let a call, its job and its connection come to their ends."""
    async with asyncio.timeout(60):
        while not task.done() or api.running.gateway.jobs.running or api.served.state.connections:
            await asyncio.sleep(0.002)
            api.running.clock.advance(0.5)


CASES: list[tuple[str, str, dict[str, Any], Act | None]] = [
    ("a chat", "chat", CHAT, None),
    ("a stream", "chat", {**CHAT, "stream": True}, None),
    ("a chat that the provider refuses", "chat", CHAT, faults.rejected),
    ("a chat whose provider drops it", "chat", CHAT, faults.dropped),
    ("a stream whose provider drops it", "chat", {**CHAT, "stream": True}, faults.dropped),
    ("a stream that is cut", "chat", {**CHAT, "stream": True}, faults.cut_stream()),
    ("a chat with half a response", "chat", CHAT, faults.truncated()),
    ("a chat with a malformed response", "chat", CHAT, faults.raw(b'{"choices": [')),
    ("a chat whose provider is away", "chat", {**CHAT, "model": "away/chat"}, None),
    ("a stream whose provider is away", "chat", {**CHAT, "model": "away/chat", "stream": True}, None),
    ("a chat of an unknown model", "chat", {**CHAT, "model": "no/such"}, None),
    ("a chat with a wrong field", "chat", {**CHAT, "temperature": 7}, None),
    ("a chat with a field that no model takes", "chat", {**CHAT, "webhook": "https://x.test"}, None),
    ("a response", "response", RESPONSE, None),
    ("a response with a field that no model takes", "response", {**RESPONSE, "webhook": "https://x.test"}, None),
    ("a response with an image", "tool", TOOL, None),
    ("a response whose image the provider refuses", "tool", TOOL, faults.blocked),
    ("a stream with an image that the provider refuses", "tool", {**TOOL, "stream": True}, faults.blocked),
    ("an image", "image", IMAGE, None),
    ("an image in base64", "image", {**IMAGE, "response_format": "b64_json"}, None),
    ("an image that the provider refuses", "image", IMAGE, faults.blocked),
    ("an image whose provider drops it", "image", IMAGE, faults.dropped),
    ("an image whose provider is away", "image", {**IMAGE, "model": "away/image"}, None),
    ("an image with a malformed response", "image", IMAGE, faults.raw(b'{"data": [')),
    ("an image with a field that no model takes", "image", {**IMAGE, "webhook": "https://x.test"}, None),
    ("several images that the provider refuses", "image", {**IMAGE, "n": 3}, faults.blocked),
    ("a stream of an image", "image", {**IMAGE, "stream": True}, None),
    ("a stream of an image that the provider refuses", "image", {**IMAGE, "stream": True}, faults.blocked),
    ("an edit", "edit", edit_body(), None),
    ("an edit that the provider refuses", "edit", edit_body(), faults.blocked),
    ("an edit whose provider drops it", "edit", edit_body(), faults.dropped),
    ("an edit whose provider is away", "edit", {**edit_body(), "model": "away/edit"}, None),
    ("an edit with a field that no model takes", "edit", {**edit_body(), "webhook": "https://x.test"}, None),
    ("an edit of no image", "edit", {**edit_body(), "image": "data:image/png;base64," + "A" * 40_000}, None),
]


async def test_an_ended_call_leaves_nothing_for_the_collector(open_gateway: OpenGateway) -> None:
    async with served(open_gateway) as api:
        lab = api.running.lab
        endpoints = {
            "chat": lab.chats,
            "response": lab.chats,
            "tool": lab.images,
            "image": lab.images,
            "edit": lab.edits,
        }
        with collector_off(), many_cases() as cases:
            for name, kind, body, act in CASES:
                with cases.case(name):
                    endpoints[kind].always(act or faults.ok)
                    path = f"/compat/v1/{PATHS[kind]}"
                    await finished(api, asyncio.create_task(api.call("POST", path, body)))
                    assert long_garbage() == []


async def test_a_call_over_a_limit_leaves_nothing_for_the_collector(open_gateway: OpenGateway) -> None:
    async with served(open_gateway) as api:
        keys = api.running.gateway.keys
        limits: list[dict[str, Any]] = [{"usd_per_day": 0}, {"usd_per_month": 0}, {"models": ["other"]}]
        created = [await keys.create_key(api.running.caller.org_id, **limit) for limit in limits]
        with collector_off(), many_cases() as cases:
            for new in created:
                for kind, body in (("chat", CHAT), ("image", IMAGE)):
                    with cases.case((new.row, kind)):
                        path = f"/compat/v1/{PATHS[kind]}"
                        call = asyncio.create_task(api.call("POST", path, body, key=new.key))
                        await finished(api, call)
                        assert call.result().status in (403, 429)
                        assert long_garbage() == []


async def test_a_caller_who_hangs_up_leaves_nothing_for_the_collector(open_gateway: OpenGateway) -> None:
    async with served(open_gateway) as api:
        lab = api.running.lab
        with collector_off(), many_cases() as cases:
            for kind, body, endpoint in (
                ("chat", CHAT, lab.chats),
                ("chat", {**CHAT, "stream": True}, lab.chats),
                ("image", IMAGE, lab.images),
            ):
                with cases.case((kind, body.get("stream"))):
                    gate = faults.Gate()
                    endpoint.next(gate)
                    reached = len(endpoint) + 1

                    async def hang_up(sent: bytes, endpoint: Endpoint = endpoint, reached: int = reached) -> None:
                        async with await api.served.connect() as line:
                            await line.send(sent)
                            await until(lambda: len(endpoint) == reached)

                    sent = request("POST", f"/compat/v1/{PATHS[kind]}", key=api.running.key, body=body)
                    leaving = asyncio.create_task(hang_up(sent))
                    await leaving
                    gate.open()
                    await finished(api, leaving)
                    assert long_garbage() == []
