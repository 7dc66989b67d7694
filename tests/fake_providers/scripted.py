"""A vendor on loopback that speaks OpenAI's images, videos and chat, does what a test scripts, and keeps an invoice.

    async with scripted_provider() as lab:
        lab.images.next(faults.busy(7), faults.ok)  # the first submission gets a 429, the second is served
        lab.videos.always(faults.dropped)           # every video is accepted, and the connection then dropped
        ...
        assert lab.invoice == []                    # what this vendor would charge for: the oracle of money tests

`lab.settings()` is the table for `[providers.lab]`. tests/fake_providers/test_scripted.py runs OpenAI's own client
against it, which shows that it answers as OpenAI does.
"""

import base64
import io
import itertools
import re
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, partial
from typing import Any

import av
from PIL import Image

from tests.fake_providers import chat
from tests.fake_providers.exchange import Exchange, Heard, Ware
from tests.fake_providers.server import Desk, Order, serve_in_thread, serving

KEY = "sk-lab-canary-0123456789abcdef"
KEY_ENV = "LAB_API_KEY"
IMAGE_USD = Decimal("0.04")
SECOND_USD = Decimal("0.10")


@cache
def png(width: int, height: int, colour: str = "teal") -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (width, height), colour).save(file, "PNG", compress_level=1)
    return file.getvalue()


@cache
def mask(width: int, height: int) -> bytes:
    """The left half is to be edited."""
    file = io.BytesIO()
    ground = Image.new("RGBA", (width, height), "white")
    ground.paste((0, 0, 0, 0), (0, 0, width // 2, height))
    ground.save(file, "PNG", compress_level=1)
    return file.getvalue()


@cache
def mp4(seconds: int = 1) -> bytes:
    """A real film: small, silent and grey."""
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as film:
        stream = film.add_stream("libx264", rate=4)
        stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
        for _ in range(4 * seconds):
            film.mux(stream.encode(av.VideoFrame(64, 64, "yuv420p")))
        film.mux(stream.encode(None))
    return file.getvalue()


@dataclass(slots=True)
class Line:
    """Something the vendor made, or began to make, and charges for."""

    id: str
    kind: str
    usd: Decimal
    prompt: str


@dataclass(slots=True)
class Film:
    """A video job. Each poll shows the next of its states; the last one stays."""

    id: str
    fields: dict[str, Any]
    states: deque[str]
    made_at: int
    code: str = "video_generation_failed"

    def turn(self) -> str:
        return self.states.popleft() if len(self.states) > 1 else self.states[0]

    @property
    def ended(self) -> bool:
        return self.states[0] in ("completed", "failed")

    def shown(self, state: str) -> dict[str, Any]:
        status, _, percent = state.partition(" ")
        error = {"code": self.code, "message": "The film could not be made."} if status == "failed" else None
        return {
            "id": self.id,
            "object": "video",
            "created_at": self.made_at,
            "completed_at": self.made_at + 1 if status == "completed" else None,
            "expires_at": self.made_at + 3600 if status == "completed" else None,
            "status": status,
            "model": self.fields.get("model", ""),
            "progress": int(percent or (100 if status == "completed" else 0)),
            "prompt": self.fields.get("prompt", ""),
            "seconds": str(self.fields.get("seconds", "4")),
            "size": self.fields.get("size", "1280x720"),
            "error": error,
            "remixed_from_video_id": None,
        }


@dataclass(frozen=True)
class ScriptedOrder(Order):
    """An exchange in the hands of an act that may know this vendor."""

    lab: "ScriptedProvider"


class ScriptedProvider:
    """The vendor. Every desk starts out serving."""

    def __init__(self, slug: str = "lab") -> None:
        self.slug = slug
        self.port = 0
        self.images, self.edits, self.videos, self.chats = Desk(), Desk(), Desk(), Desk()
        self.polls, self.cancels, self.contents, self.files, self.others = Desk(), Desk(), Desk(), Desk(), Desk()
        self.invoice: list[Line] = []
        self.films: dict[str, Film] = {}
        self.gives_addresses = False  # images as addresses instead of base64
        self.states: Sequence[str] = ("queued", "in_progress 40", "completed")
        self.next_ids: deque[str] = deque()
        self.poll_after_ms: int | None = None  # the hint that goes with every film
        self.usage: dict[str, Any] | None = None  # what image answers report
        self._pictures: dict[str, bytes] = {}
        self._numbers = itertools.count(1)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def bill_usd(self) -> Decimal:
        return sum((line.usd for line in self.invoice), Decimal(0))

    @property
    def submits(self) -> int:
        """How often this vendor was asked to make something, whatever it said."""
        return len(self.images) + len(self.edits) + len(self.videos) + len(self.chats)

    def settings(self, **said: Any) -> dict[str, Any]:
        """The provider as penstock.toml describes it; `picture` and `film` may be offered by several vendors."""
        models = [
            {"id": "picture", "upstream": "easel-1", "task": "image", "price": _price("image", IMAGE_USD)},
            {"id": "touch", "upstream": "easel-1", "task": "edit", "price": _price("image", IMAGE_USD)},
            {"id": "film", "upstream": "reel-1", "task": "video", "price": _price("second", SECOND_USD)},
            {
                "id": "lab/talk",
                "upstream": "talk-1",
                "task": "chat",
                "price": {"unit": "token", "input_usd": "0.000001", "output_usd": "0.000002"},
            },
        ]
        table = {"speaks": "openai", "base_url": self.base_url, "key_env": KEY_ENV, "models": models}
        return {**table, **said}

    # ------------------------------------------------------------------------------------------------------- answering

    async def answer(self, heard: Heard, exchange: Callable[[Mapping[str, str]], Exchange]) -> None:
        for method, pattern, desk, make in ROUTES:
            match = re.fullmatch(pattern, heard.path.partition("?")[0])
            if match and method == heard.method:
                chosen: Desk = getattr(self, desk)
                line = exchange(match.groupdict())
                act = await chosen.take(heard)
                await act(ScriptedOrder(line, partial(make, self, line), self))
                return
        self.others.heard.append(heard)
        await exchange({}).json(_error("No such path.", "invalid_request_error", "not_found"), 404)

    def new_id(self, prefix: str) -> str:
        return self.next_ids.popleft() if self.next_ids else f"{prefix}_{self.slug}_{next(self._numbers):06}"

    def charge(self, kind: str, usd: Decimal, fields: Mapping[str, Any], name: str) -> None:
        self.invoice.append(Line(name, kind, usd, str(fields.get("prompt", ""))))

    def picture(self, size: str) -> dict[str, str]:
        width, height = (int(side) for side in (size if "x" in size else "1024x1024").split("x"))
        if not self.gives_addresses:
            return {"b64_json": base64.b64encode(png(width, height)).decode()}
        name = f"{next(self._numbers):06}.png"
        self._pictures[name] = png(width, height)
        return {"url": f"http://127.0.0.1:{self.port}/files/{name}"}

    def kept_picture(self, name: str) -> bytes | None:
        return self._pictures.get(name)


def _price(unit: str, usd: Decimal) -> dict[str, str]:
    return {"unit": unit, "usd": str(usd)}


def _error(message: str, kind: str, code: str | None) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "code": code, "param": None}}


# --------------------------------------------------------------------------------------------------------- what is made


def make_images(lab: ScriptedProvider, line: Exchange) -> Ware:
    fields = line.heard.fields
    count, name = int(fields.get("n", 1)), lab.new_id("img")
    lab.charge("image", IMAGE_USD * count, fields, name)
    answer: dict[str, Any] = {
        "created": int(time.time()),
        "data": [lab.picture(str(fields.get("size", "1024x1024"))) for _ in range(count)],
    }
    if lab.usage is not None:
        answer["usage"] = lab.usage
    return Ware(answer, headers={"x-request-id": name})


def make_edit(lab: ScriptedProvider, line: Exchange) -> Ware:
    if not line.heard.fields.get("image"):
        return Ware(_error("An image is required.", "invalid_request_error", "missing_image"), 400)
    return make_images(lab, line)


def make_film(lab: ScriptedProvider, line: Exchange) -> Ware:
    fields = line.heard.fields
    film = Film(lab.new_id("video"), fields, deque(lab.states), int(time.time()))
    lab.films[film.id] = film
    lab.charge("video", SECOND_USD * Decimal(str(fields.get("seconds", 4))), fields, film.id)
    return _shown(lab, film)


def _shown(lab: ScriptedProvider, film: Film) -> Ware:
    hint = {} if lab.poll_after_ms is None else {"openai_poll_after_ms": str(lab.poll_after_ms)}
    return Ware(film.shown(film.turn()), headers=hint)


def show_film(lab: ScriptedProvider, line: Exchange) -> Ware:
    film = lab.films.get(line.params["id"])
    return _shown(lab, film) if film else _unknown()


def drop_film(lab: ScriptedProvider, line: Exchange) -> Ware:
    """OpenAI's way of cancelling: what is deleted is gone, and an unfinished film is not charged for."""
    film = lab.films.pop(line.params["id"], None)
    if film is None:
        return _unknown()
    if not film.ended:
        lab.invoice[:] = [one for one in lab.invoice if one.id != film.id]
    return Ware({"id": film.id, "object": "video.deleted", "deleted": True})


def give_film(lab: ScriptedProvider, line: Exchange) -> Ware:
    known = line.params["id"] in lab.films
    return Ware(file=mp4(), content_type="video/mp4") if known else _unknown()


def list_films(lab: ScriptedProvider, line: Exchange) -> Ware:
    shown = [film.shown(film.states[0]) for film in lab.films.values()]
    ids = [one["id"] for one in shown] or [None]
    return Ware({"object": "list", "data": shown, "first_id": ids[0], "last_id": ids[-1], "has_more": False})


def give_picture(lab: ScriptedProvider, line: Exchange) -> Ware:
    data = lab.kept_picture(line.params["name"])
    return Ware(file=data, content_type="image/png") if data else _unknown()


def make_talk(lab: ScriptedProvider, line: Exchange) -> Ware:
    name, fields = lab.new_id("chatcmpl"), line.heard.fields
    ware, usd = chat.answer(fields, name)
    lab.charge("chat", usd, {"prompt": fields["messages"][-1].get("content")}, name)
    return ware


def _unknown() -> Ware:
    return Ware(_error("Not found.", "invalid_request_error", "not_found"), 404)


ROUTES: tuple[tuple[str, str, str, Callable[[ScriptedProvider, Exchange], Ware]], ...] = (
    ("POST", r"/v1/images/generations", "images", make_images),
    ("POST", r"/v1/images/edits", "edits", make_edit),
    ("POST", r"/v1/videos", "videos", make_film),
    ("GET", r"/v1/videos", "others", list_films),
    ("GET", r"/v1/videos/(?P<id>[^/]+)", "polls", show_film),
    ("DELETE", r"/v1/videos/(?P<id>[^/]+)", "cancels", drop_film),
    ("GET", r"/v1/videos/(?P<id>[^/]+)/content", "contents", give_film),
    ("GET", r"/files/(?P<name>[^/]+)", "files", give_picture),
    ("POST", r"/v1/chat/completions", "chats", make_talk),
)


# -------------------------------------------------------------------------------------------------------------- serving


@asynccontextmanager
async def scripted_provider(slug: str = "lab") -> AsyncIterator[ScriptedProvider]:
    """In this loop."""
    async with serving(ScriptedProvider(slug)) as lab:
        yield lab


@contextmanager
def scripted_provider_in_thread(slug: str = "lab") -> Iterator[ScriptedProvider]:
    """In a thread, for tests that block: a real server process, OpenAI's blocking client."""
    with serve_in_thread(ScriptedProvider(slug)) as lab:
        yield lab
