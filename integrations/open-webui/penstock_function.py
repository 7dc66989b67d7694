"""
title: Penstock
author: The Penstock authors
version: 0.1.0
license: Apache-2.0
required_open_webui_version: 0.6.0
description: Images, edits, videos and speech of a Penstock gateway in a chat, with the price before and the progress.
"""
# A function for Open WebUI: an administrator pastes this file under Admin Panel > Functions. It is one file, and needs
# nothing that Open WebUI does not have.

import asyncio
import hashlib
import io
import json
import re
import uuid
from contextlib import suppress

import httpx
from pydantic import BaseModel, Field

MODES = {"text-to-image", "image-edit", "upscale", "text-to-video", "image-to-video", "text-to-speech"}
IMAGES = "/compat/v1/images"
VIDEOS = "/compat/v1/videos"
SOUNDS = "/compat/v1/audio"
PAUSES = (0.5, 1, 2, 4, 8)  # before a call is sent again that got no answer
TEMPORARY = (408, 429, 500, 502, 503, 504)
SHOWN = {"image": "![{name}]({url})", "video": "<video>{url}</video>", "audio": "<audio>{url}</audio>"}
FIELD = re.compile(r'--([a-z_]+)\s+("[^"]*"|\S+)')
FIELDS = re.compile(rf"(?:(?:^|\s+){FIELD.pattern})+\s*$")


class Refused(Exception):
    """What the user is told instead of a result."""


class Pipe:
    """Lists the gateway's models that make something, and answers a message with what one of them made of it."""

    class Valves(BaseModel):
        url: str = Field("http://127.0.0.1:8080", description="URL of the gateway, as Open WebUI's server reaches it")
        key: str = Field("", description="API key of the gateway", json_schema_extra={"input": {"type": "password"}})
        ask_above_usd: float = Field(0.10, description="Ask before a call that may cost more than so many dollars")
        models: str = Field("", description="Only models with one of these words in their id, separated by commas")

    def __init__(self):
        self.valves = self.Valves()
        self.name = "Penstock: "

    async def pipes(self):
        """The models, for the list of Open WebUI."""
        async with Gateway(self.valves) as gateway:
            try:
                models = await gateway.models()
            except Refused as problem:
                return [{"id": "error", "name": str(problem)}]
        words = [word.strip() for word in self.valves.models.split(",") if word.strip()]
        return [
            {"id": model["id"], "name": model.get("name") or model["id"]}
            for model in models
            if not words or any(word in model["id"] for word in words)
        ]

    async def pipe(
        self,
        body,
        __user__=None,
        __metadata__=None,
        __task__=None,
        __event_emitter__=None,
        __event_call__=None,
        __request__=None,
    ):
        """Answer a message. Nothing is made for the titles and tags that Open WebUI asks every model for."""
        text, images = last_message(body.get("messages") or [])
        if __task__:
            return task_answer(__task__, text)
        page = Page(__event_emitter__, __event_call__, __request__, __user__ or {}, __metadata__ or {})
        async with Gateway(self.valves) as gateway:
            try:
                call = await prepared(gateway, body["model"].partition(".")[2], text, images, page)
                price = await gateway.price(call)
                if price > self.valves.ask_above_usd and not await page.agrees(price, call.body["model"]):
                    await page.status("Not made", done=True)
                    return "Nothing was made, and nothing was charged."
                await page.status(f"{call.body['model']}: up to {dollars(price)}")
                made = await gateway.made(call, page)
                links = [await page.link(*await gateway.file(output), text) for output in outputs_of(made)]
            except Refused as problem:
                await page.status("Failed", done=True)
                return str(problem)
        metadata = made["metadata"]
        done = f"{metadata['executed_model']}, {dollars(metadata['cost'])}, request {made['id']}"
        await page.status(done, done=True)
        return "\n\n".join(links)


# ------------------------------------------------------------------------------------------------ what the message says


class Call:
    """A call of the gateway that makes something."""

    def __init__(self, path, shown_at, body):
        self.path = path
        self.shown_at = shown_at  # where it can be polled
        self.body = body


def last_message(messages):
    """The text and the images of the user's last message."""
    content = next((each["content"] for each in reversed(messages) if each.get("role") == "user"), "")
    if isinstance(content, str):
        return content.strip(), []
    text = " ".join(part.get("text", "") for part in content if part.get("type") == "text")
    images = [part["image_url"]["url"] for part in content if part.get("type") == "image_url"]
    return text.strip(), images


def split_fields(text):
    """The prompt, and the fields that follow it: `a fox --size 16:9 --n 2`."""
    found = FIELDS.search(text)
    if not found:
        return text, {}
    fields = {name: number_or_text(value.strip('"')) for name, value in FIELD.findall(found[0])}
    return text[: found.start()].strip(), fields


def number_or_text(value):
    try:
        return json.loads(value)
    except ValueError:
        return value


async def prepared(gateway, model, text, images, page):
    """The call for a message: what the model does decides, and whether there are images."""
    modes = next((each["modes"] for each in await gateway.models() if each["id"] == model), [])
    prompt, fields = split_fields(text)
    own = {"model": model, **page.labels(), **fields}
    body = {"prompt": prompt, **own}
    if "text-to-speech" in modes:
        return Call(f"{SOUNDS}/speech", f"{SOUNDS}/generations", {"input": prompt, **own})
    if images and "image-edit" in modes:
        return Call(f"{IMAGES}/edits", IMAGES, {**body, "image": images})
    if images and "upscale" in modes:
        return Call(f"{IMAGES}/edits", IMAGES, {"image": images, **own})
    if images and "image-to-video" in modes:
        references = [{"image_url": image} for image in images]
        return Call(VIDEOS, VIDEOS, {**body, "input_reference": references})
    if not images and "text-to-image" in modes:
        return Call(f"{IMAGES}/generations", IMAGES, body)
    if not images and "text-to-video" in modes:
        return Call(VIDEOS, VIDEOS, body)
    needs = "takes no images" if images else "needs an image: attach one to your message"
    raise Refused(f"{model} {needs}." if modes else f"{model} is not in the gateway's list of models.")


def task_answer(task, text):
    """What Open WebUI wants beside the answer, without a model."""
    if task == "title_generation":
        return json.dumps({"title": split_fields(text)[0][:60]})
    return json.dumps({"tags": [], "follow_ups": [], "queries": [], "text": ""})


def is_ended(state):
    """Whether there is a result or an error. What a repeated start returns has neither, whatever its status says."""
    return any(state.get(name) for name in ("data", "output", "error"))


def outputs_of(made):
    return made.get("data") or made.get("outputs") or [made["output"]]


def dollars(amount):
    whole, _, rest = f"{amount:.6f}".rstrip("0").partition(".")
    return f"${whole}.{rest:0<2}"


# ---------------------------------------------------------------------------------------------------------- the gateway


class Gateway:
    """Calls a gateway. A paid call has a key, with which it is repeated and charged once."""

    def __init__(self, valves):
        headers = {"Authorization": f"Bearer {valves.key}"}
        self._http = httpx.AsyncClient(base_url=valves.url.rstrip("/"), headers=headers, timeout=600)

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self._http.aclose()

    async def models(self):
        """The models that make something."""
        listed = (await self._send("GET", "/compat/v1/models")).json()["data"]
        return [model for model in listed if MODES.intersection(model.get("modes", ()))]

    async def price(self, call):
        """What a call costs at most, in dollars."""
        answer = await self._send("POST", f"{call.path}?dryRun=true", call.body)
        return answer.json()["total_cost_micros"] / 1e6

    async def made(self, call, page):
        """Start a call, and wait until it has ended; cancel it if the user stops it, also while it is being started."""
        start = asyncio.create_task(self._start(call, page))
        try:
            state = await asyncio.shield(start)
            while not is_ended(state):
                await page.status(f"{call.body['model']}: {state.get('progress') or 0} %")
                await asyncio.sleep(1)
                state = (await self._send("GET", f"{call.shown_at}/{state['id']}")).json()
        except asyncio.CancelledError:
            with suppress(Refused):
                await self._send("DELETE", f"{call.shown_at}/{(await start)['id']}")
            raise
        if error := state.get("error"):
            raise Refused(f"{error['message']} ({error['code']})")
        return state

    async def _start(self, call, page):
        headers = {"Idempotency-Key": page.call_key(call.body)}
        if call.path != VIDEOS:
            headers["Prefer"] = "respond-async"
        return (await self._send("POST", call.path, call.body, headers)).json()

    async def file(self, output):
        """The content and the type of an output. Its URL is signed, and gets no key."""
        async with httpx.AsyncClient(timeout=600) as http:
            try:
                answer = await http.get(output["url"])
                answer.raise_for_status()
            except httpx.HTTPError as problem:
                raise Refused(f"The file could not be read: {problem}") from None
        return answer.content, answer.headers["content-type"].partition(";")[0]

    async def _send(self, method, path, body=None, headers=None):
        may_repeat = method != "POST" or "Idempotency-Key" in (headers or {})
        for pause in (*PAUSES, None):
            try:
                answer = await self._http.request(method, path, json=body, headers=headers)
            except httpx.TransportError:
                if not may_repeat or pause is None:
                    raise Refused(f"No gateway answers at {self._http.base_url}.") from None
            else:
                if answer.is_success:
                    return answer
                again = answer.headers.get("x-should-retry", "true") == "true" and answer.status_code in TEMPORARY
                if not (may_repeat and again) or pause is None:
                    raise Refused(refusal(answer))
            await asyncio.sleep(pause)
        raise AssertionError("the last try returns or raises")


def refusal(answer):
    try:
        error = answer.json()["error"]
        return f"{error['message']} ({error['code']})"
    except (ValueError, KeyError, TypeError):
        return f"What answers there is not a Penstock gateway: status {answer.status_code}."


# ----------------------------------------------------------------------------------------------------------- Open WebUI


class Page:
    """The chat in which the answer appears."""

    def __init__(self, emit, ask, request, user, metadata):
        self._emit = emit
        self._ask = ask
        self._request = request
        self._user = user
        self._metadata = metadata

    def labels(self):
        """By whom and in which chat a call was made, so that costs can be grouped by both."""
        given = {"user": self._user.get("id"), "session_id": self._metadata.get("chat_id")}
        return {name: str(value) for name, value in given.items() if value}

    def call_key(self, body):
        """The key of a call: the same for one message, whatever happens on the way."""
        message = self._metadata.get("message_id") or uuid.uuid4().hex
        return "owui_" + hashlib.sha256(json.dumps([message, body]).encode()).hexdigest()

    async def status(self, text, done=False):
        if self._emit:
            await self._emit({"type": "status", "data": {"description": text, "done": done}})

    async def agrees(self, price, model):
        """Ask the user. Where nobody can be asked, such as in a call of the API, nothing is made."""
        message = f"{model} may cost up to {dollars(price)}."
        event = {"type": "confirmation", "data": {"title": "Make it?", "message": message}}
        answer = await self._ask(event) if self._ask else {"error": "no session"}
        if isinstance(answer, dict):
            raise Refused(f"{message} There is nobody to ask; `ask_above_usd` allows it.")
        return answer is True

    async def link(self, content, media_type, text):
        """Store a file in Open WebUI, where it stays, and return what shows it."""
        kind = media_type.partition("/")[0]
        name = re.sub(r"[\[\]()<>\n]", " ", split_fields(text)[0])[:80]
        return SHOWN.get(kind, "[{name}]({url})").format(name=name, url=await self._store(content, media_type))

    async def _store(self, content, media_type):
        from fastapi import UploadFile
        from open_webui.models.users import Users
        from open_webui.routers.files import upload_file_handler

        ending = {"image/svg+xml": "svg", "audio/mpeg": "mp3"}.get(media_type, media_type.partition("/")[2])
        file = UploadFile(io.BytesIO(content), filename=f"penstock.{ending}", headers={"content-type": media_type})
        ids = {name: self._metadata.get(name) for name in ("chat_id", "message_id")}
        user = await Users.get_user_by_id(self._user["id"])
        item = await upload_file_handler(self._request, file=file, metadata=ids, process=False, user=user)
        return self._request.app.url_path_for("get_file_content_by_id", id=item.id)
