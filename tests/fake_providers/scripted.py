"""A fake provider with OpenAI's API for images, videos, chat and sounds, which tests script and which keeps an invoice.

    async with scripted_provider() as lab:
        lab.images.next(faults.busy(7), faults.ok)  # the first submission gets a 429, the second is answered
        lab.videos.always(faults.dropped)           # every video is accepted, then the connection is dropped
        ...
        assert lab.invoice == []                    # what this provider would charge for

`lab.settings()` is the table for `[providers.lab]`. tests/fake_providers/test_scripted.py runs OpenAI's own client
against it, to show that it behaves as OpenAI does.
"""

import base64
import io
import itertools
import math
import random
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

from penstock.sound.formats import content_type
from tests import sounds
from tests.fake_providers import chat
from tests.fake_providers.exchange import Exchange, FakeResponse, OpenExchange, ReceivedRequest
from tests.fake_providers.server import Endpoint, FakeCall, serve_in_thread, serving

KEY = "sk-lab-canary-0123456789abcdef"
KEY_ENV = "LAB_API_KEY"
IMAGE_USD = Decimal("0.04")
SECOND_USD = Decimal("0.10")
CHARACTER_USD = Decimal("0.00001")
HEARD_SECOND_USD = Decimal("0.0001")
SOUND_SECOND_USD = Decimal("0.01")


@cache
def png(width: int, height: int, colour: str = "teal") -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (width, height), colour).save(file, "PNG", compress_level=1)
    return file.getvalue()


@cache
def noise(side: int) -> bytes:
    """A PNG that cannot be compressed, of three bytes for each pixel."""
    file = io.BytesIO()
    pixels = random.Random(7).randbytes(3 * side * side)
    Image.frombytes("RGB", (side, side), pixels).save(file, "PNG", compress_level=1)
    return file.getvalue()


@cache
def mask(width: int, height: int) -> bytes:
    """A mask: the left half is to be edited."""
    file = io.BytesIO()
    image = Image.new("RGBA", (width, height), "white")
    image.paste((0, 0, 0, 0), (0, 0, width // 2, height))
    image.save(file, "PNG", compress_level=1)
    return file.getvalue()


def blank_frame(width: int, height: int, pixels: str = "yuv420p") -> av.VideoFrame:
    """A frame in one colour; a new frame of PyAV has what was in memory."""
    frame = av.VideoFrame(width, height, pixels)
    for plane in frame.planes:
        plane.update(bytes(plane.buffer_size))
    return frame


@cache
def mp4(seconds: int = 1) -> bytes:
    """A real video: small, silent and in one colour."""
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=4)
        stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
        for _ in range(4 * seconds):
            container.mux(stream.encode(blank_frame(64, 64)))
        container.mux(stream.encode(None))
    return file.getvalue()


@dataclass(slots=True)
class Charge:
    """Something that the provider made or began to make, and charges for."""

    id: str
    kind: str
    usd: Decimal
    prompt: str


@dataclass(slots=True)
class VideoJob:
    """A video job. Each poll shows its next state; the last state stays."""

    id: str
    fields: dict[str, Any]
    states: deque[str]
    made_at: int
    code: str = "video_generation_failed"
    account: str = ""  # that has started it

    def next_state(self) -> str:
        return self.states.popleft() if len(self.states) > 1 else self.states[0]

    @property
    def is_finished(self) -> bool:
        return self.states[0] in ("completed", "failed")

    def response_fields(self, state: str) -> dict[str, Any]:
        status, _, percent = state.partition(" ")
        error = {"code": self.code, "message": "The video could not be made."} if status == "failed" else None
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
class ScriptedCall(FakeCall):
    """A call with the provider itself, for acts that change it."""

    lab: "ScriptedProvider"


class ScriptedProvider:
    """The fake provider. All endpoints answer normally until a test scripts them."""

    def __init__(self, slug: str = "lab") -> None:
        self.slug = slug
        self.port = 0
        self.images = Endpoint()
        self.edits = Endpoint()
        self.videos = Endpoint()
        self.chats = Endpoint()
        self.responses = Endpoint()
        self.speeches = Endpoint()
        self.transcripts = Endpoint()
        self.translations = Endpoint()
        self.effects = Endpoint()
        self.polls = Endpoint()
        self.cancels = Endpoint()
        self.contents = Endpoint()
        self.files = Endpoint()
        self.others = Endpoint()
        self.invoice: list[Charge] = []
        self.video_jobs: dict[str, VideoJob] = {}
        self.returns_urls = False  # images as URLs instead of base64
        self.states: Sequence[str] = ("queued", "in_progress 40", "completed")
        self.next_ids: deque[str] = deque()
        self.poll_after_ms: int | None = None  # sent with every video job
        self.characters_per_second = 15
        self.usage: dict[str, Any] | None = None  # reported with images
        # The account of each credential; then other credentials are refused, and jobs of other accounts are not found.
        self.accounts: dict[str, str] = {}
        self.foreign_calls: list[str] = []  # about jobs of another account
        self.exhausted: set[str] = set()  # accounts that must pay before they may submit anything
        self._images: dict[str, bytes] = {}
        self._numbers = itertools.count(1)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def bill_usd(self) -> Decimal:
        return sum((charge.usd for charge in self.invoice), Decimal(0))

    @property
    def submits(self) -> int:
        """How many submissions it received, whatever the response was."""
        return (
            len(self.images)
            + len(self.edits)
            + len(self.videos)
            + len(self.chats)
            + len(self.responses)
            + len(self.speeches)
            + len(self.transcripts)
            + len(self.translations)
            + len(self.effects)
        )

    def settings(self, **changes: Any) -> dict[str, Any]:
        """The provider's table in penstock.toml. Several providers may have the models `image` and `video`."""
        models = [
            {"id": "image-1", "upstream": "easel-1", "task": "image", "price": _price("image", IMAGE_USD)},
            {"id": "edit-1", "upstream": "easel-1", "task": "edit", "price": _price("image", IMAGE_USD)},
            {"id": "video-1", "upstream": "reel-1", "task": "video", "price": _price("second", SECOND_USD)},
            {
                "id": "lab/voice",
                "upstream": "voice-1",
                "task": "speech",
                "price": _price("character", CHARACTER_USD),
            },
            *(
                {
                    "id": "lab/listen",
                    "upstream": "listen-1",
                    "task": task,
                    "price": _price("second", HEARD_SECOND_USD),
                }
                for task in ("transcription", "translation")
            ),
            {"id": "lab/sound", "upstream": "foley-1", "task": "sound", "price": _price("second", SOUND_SECOND_USD)},
            {
                "id": "lab/chat",
                "upstream": "chat-1",
                "task": "chat",
                "price": {"unit": "token", "input_usd": "0.000001", "output_usd": "0.000002"},
            },
        ]
        table = {"speaks": "openai", "base_url": self.base_url, "key_env": KEY_ENV, "models": models}
        return {**table, **changes}

    # ------------------------------------------------------------------------------------------------------- responding

    async def respond(self, request: ReceivedRequest, open_exchange: OpenExchange) -> None:
        for method, pattern, name, make in ROUTES:
            match = re.fullmatch(pattern, request.path.partition("?")[0])
            if match and method == request.method:
                endpoint: Endpoint = getattr(self, name)
                exchange = open_exchange(match.groupdict())
                act = await endpoint.take(request)
                if self.accounts and self.account_of(request) is None:
                    await exchange.json(_error("Incorrect API key.", "invalid_request_error", "invalid_api_key"), 401)
                    return
                if method == "POST" and self.account_of(request) in self.exhausted:
                    await exchange.json(_error("Your balance is used up.", "billing_error", "no_balance"), 402)
                    return
                await act(ScriptedCall(exchange, partial(make, self, exchange), self))
                return
        self.others.received.append(request)
        await open_exchange({}).json(_error("No such path.", "invalid_request_error", "not_found"), 404)

    def account_of(self, request: ReceivedRequest) -> str | None:
        """The account whose credential a request has; None for a credential that is not known."""
        return self.accounts.get(request.headers.get("authorization", "").removeprefix("Bearer "))

    def own_job(self, call: Exchange) -> VideoJob | None:
        """The job that a call is about, if it belongs to the caller's account."""
        job = self.video_jobs.get(call.params["id"])
        if job is not None and self.accounts and self.account_of(call.request) != job.account:
            self.foreign_calls.append(f"{call.request.method} {call.request.path}")
            return None
        return job

    def new_id(self, prefix: str) -> str:
        return self.next_ids.popleft() if self.next_ids else f"{prefix}_{self.slug}_{next(self._numbers):06}"

    def charge(self, kind: str, usd: Decimal, fields: Mapping[str, Any], name: str) -> None:
        self.invoice.append(Charge(name, kind, usd, str(fields.get("prompt", ""))))

    def image_object(self, size: str) -> dict[str, str]:
        width, height = (int(side) for side in (size if "x" in size else "1024x1024").split("x"))
        if not self.returns_urls:
            return {"b64_json": base64.b64encode(png(width, height)).decode()}
        name = f"{next(self._numbers):06}.png"
        self._images[name] = png(width, height)
        return {"url": f"http://127.0.0.1:{self.port}/files/{name}"}

    def stored_image(self, name: str) -> bytes | None:
        return self._images.get(name)


def _price(unit: str, usd: Decimal) -> dict[str, str]:
    return {"unit": unit, "usd": str(usd)}


def _error(message: str, kind: str, code: str | None) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "code": code, "param": None}}


# ------------------------------------------------------------------------------------------------------------ endpoints


def create_images(lab: ScriptedProvider, call: Exchange) -> FakeResponse:
    fields = call.request.fields
    count, name = int(fields.get("n", 1)), lab.new_id("img")
    lab.charge("image", IMAGE_USD * count, fields, name)
    body: dict[str, Any] = {
        "created": int(time.time()),
        "data": [lab.image_object(str(fields.get("size", "1024x1024"))) for _ in range(count)],
    }
    if lab.usage is not None:
        body["usage"] = lab.usage
    return FakeResponse(body, headers={"x-request-id": name})


def edit_image(lab: ScriptedProvider, call: Exchange) -> FakeResponse:
    if not call.request.fields.get("image"):
        return FakeResponse(_error("An image is required.", "invalid_request_error", "missing_image"), 400)
    return create_images(lab, call)


def create_video(lab: ScriptedProvider, call: Exchange) -> FakeResponse:
    fields = call.request.fields
    job = VideoJob(lab.new_id("video"), fields, deque(lab.states), int(time.time()))
    job.account = lab.account_of(call.request) or ""
    lab.video_jobs[job.id] = job
    lab.charge("video", SECOND_USD * Decimal(str(fields.get("seconds", 4))), fields, job.id)
    return _job_response(lab, job)


def _job_response(lab: ScriptedProvider, job: VideoJob) -> FakeResponse:
    hint = {} if lab.poll_after_ms is None else {"openai_poll_after_ms": str(lab.poll_after_ms)}
    return FakeResponse(job.response_fields(job.next_state()), headers=hint)


def show_video(lab: ScriptedProvider, call: Exchange) -> FakeResponse:
    job = lab.own_job(call)
    return _job_response(lab, job) if job else _not_found()


def delete_video(lab: ScriptedProvider, call: Exchange) -> FakeResponse:
    """Delete a video, which is how OpenAI cancels; an unfinished video is not charged for."""
    job = lab.own_job(call)
    if job is None:
        return _not_found()
    del lab.video_jobs[job.id]
    if not job.is_finished:
        lab.invoice[:] = [charge for charge in lab.invoice if charge.id != job.id]
    return FakeResponse({"id": job.id, "object": "video.deleted", "deleted": True})


def send_video(lab: ScriptedProvider, call: Exchange) -> FakeResponse:
    known = lab.own_job(call) is not None
    return FakeResponse(file=mp4(), content_type="video/mp4") if known else _not_found()


def list_videos(lab: ScriptedProvider, call: Exchange) -> FakeResponse:
    jobs = [job.response_fields(job.states[0]) for job in lab.video_jobs.values()]
    ids = [job["id"] for job in jobs] or [None]
    return FakeResponse({"object": "list", "data": jobs, "first_id": ids[0], "last_id": ids[-1], "has_more": False})


def send_image(lab: ScriptedProvider, call: Exchange) -> FakeResponse:
    data = lab.stored_image(call.params["name"])
    return FakeResponse(file=data, content_type="image/png") if data else _not_found()


def complete_chat(lab: ScriptedProvider, call: Exchange) -> FakeResponse:
    name, fields = lab.new_id("chatcmpl"), call.request.fields
    response, usd = chat.completion(fields, name)
    lab.charge("chat", usd, {"prompt": fields["messages"][-1].get("content")}, name)
    return response


def create_response(lab: ScriptedProvider, call: Exchange) -> FakeResponse:
    name, fields = lab.new_id("resp"), call.request.fields
    from tests.fake_providers import responses  # the types of OpenAI's client, which take a second to import

    response, usd = responses.respond(fields, name)
    if usd:
        lab.charge("chat", usd, {"prompt": fields["input"]}, name)
    return response


def speak(lab: ScriptedProvider, call: Exchange) -> FakeResponse:
    """A tone instead of speech, as long as the text: it can be recognised whatever is done with it."""
    fields = call.request.fields
    voices = ("alloy", "verse")
    if fields.get("voice") not in voices:
        return FakeResponse(_error(f"The voice must be one of {voices}.", "invalid_request_error", "bad_voice"), 400)
    lab.charge("speech", CHARACTER_USD * len(fields["input"]), {"prompt": fields["input"]}, lab.new_id("speech"))
    output_format = fields.get("response_format", "mp3")
    seconds = len(fields["input"]) / lab.characters_per_second / fields.get("speed", 1)
    return FakeResponse(file=sounds.encoded(output_format, seconds), content_type=content_type(output_format))


WORDS = ("Never", "gonna", "give", "you", "up.", "Never", "gonna", "let", "you", "down.")


def transcribe(lab: ScriptedProvider, call: Exchange) -> FakeResponse:
    """As Whisper answers: every sound has the same words, spread over its length."""
    fields = call.request.fields
    seconds = sounds.seconds_of(fields["file"])
    lab.charge("transcript", HEARD_SECOND_USD * Decimal(str(round(seconds, 3))), {}, lab.new_id("transcript"))
    text = " ".join(WORDS)
    if fields.get("response_format", "json") == "json":
        return FakeResponse({"text": text, "usage": {"type": "duration", "seconds": math.ceil(seconds)}})
    step = seconds / len(WORDS)
    words = [{"word": word, "start": at * step, "end": (at + 0.9) * step} for at, word in enumerate(WORDS)]
    numbers = {"seek": 0, "tokens": [1, 2], "temperature": 0.0, "avg_logprob": -0.2, "compression_ratio": 1.1}
    halves = [(0, " " + " ".join(WORDS[:5])), (1, " " + " ".join(WORDS[5:]))]
    segments = [
        {"id": at, "start": at * 5 * step, "end": (at + 1) * 5 * step, "text": half, **numbers, "no_speech_prob": 0.01}
        for at, half in halves
    ]
    shown = {"task": "transcribe", "language": "english", "duration": seconds, "text": text, "segments": segments}
    asked = fields.get("timestamp_granularities", [])
    return FakeResponse({**shown, "words": words} if "word" in asked else shown)


def make_effect(lab: ScriptedProvider, call: Exchange) -> FakeResponse:
    """A tone of the length that was asked for, or of seven seconds, in MP3."""
    fields = call.request.fields
    seconds = float(fields.get("duration_seconds", 7))
    lab.charge("sound", SOUND_SECOND_USD * Decimal(str(seconds)), {"prompt": fields["text"]}, lab.new_id("sound"))
    return FakeResponse(file=sounds.encoded("mp3", seconds), content_type="audio/mpeg")


def _not_found() -> FakeResponse:
    return FakeResponse(_error("Not found.", "invalid_request_error", "not_found"), 404)


ROUTES: tuple[tuple[str, str, str, Callable[[ScriptedProvider, Exchange], FakeResponse]], ...] = (
    ("POST", r"/v1/images/generations", "images", create_images),
    ("POST", r"/v1/images/edits", "edits", edit_image),
    ("POST", r"/v1/videos", "videos", create_video),
    ("GET", r"/v1/videos", "others", list_videos),
    ("GET", r"/v1/videos/(?P<id>[^/]+)", "polls", show_video),
    ("DELETE", r"/v1/videos/(?P<id>[^/]+)", "cancels", delete_video),
    ("GET", r"/v1/videos/(?P<id>[^/]+)/content", "contents", send_video),
    ("GET", r"/files/(?P<name>[^/]+)", "files", send_image),
    ("POST", r"/v1/chat/completions", "chats", complete_chat),
    ("POST", r"/v1/responses", "responses", create_response),
    ("POST", r"/v1/audio/speech", "speeches", speak),
    ("POST", r"/v1/audio/transcriptions", "transcripts", transcribe),
    ("POST", r"/v1/audio/translations", "translations", transcribe),
    ("POST", r"/v1/sound-generation", "effects", make_effect),
)


# -------------------------------------------------------------------------------------------------------------- serving


@asynccontextmanager
async def scripted_provider(slug: str = "lab") -> AsyncIterator[ScriptedProvider]:
    """Run the scripted provider in this event loop."""
    async with serving(ScriptedProvider(slug)) as lab:
        yield lab


@contextmanager
def scripted_provider_in_thread(slug: str = "lab") -> Iterator[ScriptedProvider]:
    """Run the scripted provider in a thread, for tests that block: a real server process, OpenAI's blocking client."""
    with serve_in_thread(ScriptedProvider(slug)) as lab:
        lab.poll_after_ms = 20  # a real process has a real clock
        yield lab
