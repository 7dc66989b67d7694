"""Answer the requests of Atelier's table: images, chat, speech and transcripts at once, the rest as jobs."""

import asyncio
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec
import structlog

from penstock.providers.spec import ChildTask, HttpRequest, LocalTools, OrgId, Reply, WorkFailed
from penstock_atelier.renderers import echo
from penstock_atelier.renderers.edit_words import EDIT_WORDS
from penstock_atelier.renderers.words import unknown_words

log = structlog.get_logger()


def _task(target: str, **limits: Any) -> ChildTask:
    """A task of `renderers`, none of which starts a thread when it is imported."""
    return ChildTask(f"penstock_atelier.renderers.{target}", import_first=True, **limits)


def _sounds(function: str, **limits: Any) -> ChildTask:
    return ChildTask(f"penstock_atelier.sounds.render:{function}", import_first=True, **limits)


TASKS = {
    "sketch": _task("sketch:draw_image", cpu_seconds=30, wall_seconds=90),
    "retouch": _task("retouch:edit_image", cpu_seconds=30, wall_seconds=90),
    "enlarge": _task("enlarge:enlarge_image", cpu_seconds=30, wall_seconds=90),
    "clip": _task("clip:render_video", cpu_seconds=300, wall_seconds=600, reports=True, long=True),
    "echo": _task("echo:answer_in_child", cpu_seconds=5, wall_seconds=40),
    "listen": _task("listen:listen", cpu_seconds=600, wall_seconds=1200, long=True),
    "sound": _sounds("render_sound", cpu_seconds=60, wall_seconds=180),
    "music": _sounds("render_music", cpu_seconds=300, wall_seconds=600, long=True),
    "speak": ChildTask("penstock_atelier.voice.speak:speak", cpu_seconds=600, streams=True, import_first=True),
}
# A chat call up to this size is answered on the event loop in about a millisecond, sooner than a child process can be
# asked. Lists of probabilities are much longer than the text, so a call that wants them goes to a child.
_SMALL_CHAT_BYTES = 2048
# Words in a prompt that make a job fail, so that callers can try their error handling.
MARKERS = {
    "[fail]": ("broken", "It failed because its prompt contains [fail]."),
    "[refuse]": ("refused", "It was refused because its prompt contains [refuse]."),
}
_RENDERER_FAILED = "The renderer failed."
_REPORTED_JOBS_KEPT = 8  # a poll may be repeated
_FINISHED_JOBS_KEPT = 64  # also those that were never polled


# ------------------------------------------------------------------------------------------------------------- requests

# Fields are picked by name: a field that is not listed here never reaches a renderer.


InputImages = Annotated[list[bytes], msgspec.Meta(min_length=1)]


def _with_unknown_words(prompt: str, unknown: list[str]) -> str | None:
    return f"{prompt} [not drawn, unknown to Atelier: {', '.join(unknown)}]" if unknown else None


class SketchRequest(msgspec.Struct, frozen=True):
    """`n` images from a prompt."""

    n: int = 1
    prompt: str = ""
    seed: int = 0
    width: int = 1024
    height: int = 1024

    def task(self, number: int) -> tuple[str, dict[str, Any]]:
        """The child task and its arguments for one of the images, counted from 0; each has its own seed."""
        return "sketch", {
            "prompt": self.prompt,
            "seed": self.seed + number,
            "width": self.width,
            "height": self.height,
        }

    def revised_prompt(self) -> str | None:
        """The prompt with the words named that are not drawn; None when there are none."""
        return _with_unknown_words(self.prompt, unknown_words(self.prompt))


class RetouchRequest(SketchRequest, frozen=True, kw_only=True):
    """`n` edits of the same images by a prompt."""

    images: InputImages
    mask: bytes | None = None

    def task(self, number: int) -> tuple[str, dict[str, Any]]:
        _, arguments = SketchRequest.task(self, number)
        return "retouch", {**arguments, "images": self.images, "mask": self.mask}

    def revised_prompt(self) -> str | None:
        """The prompt with the words named that change nothing; None when there are none."""
        return _with_unknown_words(self.prompt, unknown_words(self.prompt, EDIT_WORDS))


class EnlargeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """`n` larger copies of the first image."""

    n: int = 1
    images: InputImages
    scale_factor: float = 2

    def task(self, number: int) -> tuple[str, dict[str, Any]]:
        return "enlarge", {"data": self.images[0], "factor": self.scale_factor}

    def revised_prompt(self) -> None:
        """There is no prompt."""


class VideoRequest(msgspec.Struct, frozen=True):
    """A video from a prompt, or from a prompt and an image."""

    prompt: str = ""
    seed: int = 0
    seconds: float = 4.0
    width: int = 1280
    height: int = 720
    image: bytes | None = None

    def task(self) -> tuple[str, dict[str, Any]]:
        """The child task that renders it, and its arguments."""
        return "clip", {
            "prompt": self.prompt,
            "seed": self.seed,
            "seconds": self.seconds,
            "width": self.width,
            "height": self.height,
            "image": self.image,
        }

    def revised_prompt(self) -> str | None:
        """As that of an image; None where an image is moved instead."""
        return None if self.image else _with_unknown_words(self.prompt, unknown_words(self.prompt))


class SoundRequest(msgspec.Struct, frozen=True):
    """An effect from a prompt."""

    prompt: str = ""
    seed: int = 0
    seconds: float = 5.0
    loop: bool = False

    def task(self) -> tuple[str, dict[str, Any]]:
        return "sound", {"prompt": self.prompt, "seed": self.seed, "seconds": self.seconds, "loop": self.loop}


class MusicRequest(msgspec.Struct, frozen=True):
    """A piece of music from a prompt."""

    prompt: str = ""
    seed: int = 0
    seconds: float = 20.0

    def task(self) -> tuple[str, dict[str, Any]]:
        return "music", {"prompt": self.prompt, "seed": self.seed, "seconds": self.seconds}


class SpeechRequest(msgspec.Struct, frozen=True):
    """A text to speak."""

    input: str
    voice: str
    speed: float = 1.0


ImageRequest = SketchRequest | RetouchRequest | EnlargeRequest
_IMAGE_REQUESTS: Mapping[str, type[ImageRequest]] = {
    "sketch": SketchRequest,
    "retouch": RetouchRequest,
    "enlarge": EnlargeRequest,
}
JobRequest = VideoRequest | SoundRequest | MusicRequest
_JOB_REQUESTS: Mapping[str, type[JobRequest]] = {"videos": VideoRequest, "sounds": SoundRequest, "music": MusicRequest}


# --------------------------------------------------------------------------------------------------------------- server


@dataclass(slots=True)
class Job:
    """A video or a sound being rendered. It is lost when the process ends; the gateway then submits it again."""

    status: str = "queued"
    progress: float = 0.0
    data: bytes | None = None
    revised_prompt: str | None = None
    kind: str = "broken"
    message: str | None = None
    is_reported: bool = False  # the gateway knows that it is finished
    task: asyncio.Task[None] | None = field(default=None, repr=False)

    @property
    def is_finished(self) -> bool:
        return self.status not in ("queued", "in_progress")

    def report(self, fraction: float) -> None:
        self.progress = fraction

    def fail(self, message: str, kind: str = "broken") -> None:
        self.status = "failed"
        self.kind = kind
        self.message = message


class AtelierServer:
    """Takes the place of an HTTP server: requests in, replies out."""

    def __init__(self, tools: LocalTools) -> None:
        self._run = tools.run
        self._stream_task = tools.stream
        self._jobs: dict[str, Job] = {}

    async def send(self, request: HttpRequest, for_org: OrgId | None) -> Reply:
        """Answer one request; a path that the table does not use is answered with 404."""
        endpoint, _, job_id = urlsplit(request.url).path.strip("/").partition("/")
        if endpoint in _JOB_REQUESTS and job_id:
            return self._cancel(job_id) if request.method == "DELETE" else self._job_reply(job_id)
        if for_org is None:  # nothing else is asked without an organization
            return _no_endpoint(endpoint)
        try:
            if endpoint in _JOB_REQUESTS:
                job = msgspec.msgpack.decode(request.whole_body, type=_JOB_REQUESTS[endpoint])
                return self._start_job(job, for_org, endpoint)
            if endpoint in _IMAGE_REQUESTS:
                images = msgspec.msgpack.decode(request.whole_body, type=_IMAGE_REQUESTS[endpoint])
                return await self._images(images, for_org)
        except msgspec.ValidationError as problem:
            return _reply({"message": str(problem)}, 400)
        if endpoint == "listen":
            return await self._listen(request.whole_body, for_org)
        if endpoint == "echo":
            (completion,) = [piece async for piece in self._chat(request.whole_body, for_org, stream=False)]
            return Reply(200, {"content-type": "application/json"}, completion)
        return _no_endpoint(endpoint)

    async def stream(self, request: HttpRequest, for_org: OrgId) -> AsyncGenerator[bytes, None]:
        """A chat completion as server-sent events, or the samples of speech."""
        if urlsplit(request.url).path.strip("/") == "speak":
            said = msgspec.msgpack.decode(request.whole_body, type=SpeechRequest)
            arguments = {"text": said.input, "voice": said.voice, "speed": said.speed}
            async for samples in self._stream_task("speak", arguments, for_org):
                yield samples
            return
        async for event in self._chat(request.whole_body, for_org, stream=True):
            yield event
            await asyncio.sleep(0)  # other tasks run between two chunks, as they do with a provider on the network

    async def close(self) -> None:
        """Stop every job that is being rendered."""
        tasks = [job.task for job in self._jobs.values() if job.task and not job.task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _images(self, request: ImageRequest, for_org: OrgId) -> Reply:
        try:
            images = await asyncio.gather(*(self._run(*request.task(number), for_org) for number in range(request.n)))
        except WorkFailed as problem:
            if problem.kind == "refused":
                return _reply({"message": problem.message}, 400)
            return _reply({"message": _RENDERER_FAILED}, 500)
        revised = request.revised_prompt()
        files = [
            {"data": image["data"], "content_type": image["content_type"], "revised_prompt": revised}
            for image in images
        ]
        return _reply({"id": _new_id("image"), "images": files})

    async def _chat(self, body: bytes, for_org: OrgId, *, stream: bool) -> AsyncIterator[bytes]:
        """The events of a stream, or the whole response as the only piece; the work takes place in a child process,
        except for a small call. Raises WorkFailed.
        """
        fields = msgspec.json.decode(body) if len(body) <= _SMALL_CHAT_BYTES else None
        if fields is None or fields.get("logprobs"):
            reply = await self._run("echo", {"body": body, "stream": stream}, for_org)
            for piece in reply["pieces"]:
                yield piece
        elif stream:
            for event in echo.encode_events(fields):
                yield event
        else:
            yield echo.encode_completion(fields)

    async def _listen(self, body: bytes, for_org: OrgId) -> Reply:
        """The transcript of a sound, as OpenAI's API has it."""
        try:
            heard = await self._run("listen", {"file": msgspec.msgpack.decode(body)["file"]}, for_org)
        except WorkFailed:
            return _reply({"message": _RENDERER_FAILED}, 500)
        return Reply(200, {"content-type": "application/json"}, heard["body"])

    # ----------------------------------------------------------------------------------------------------------- jobs

    def _start_job(self, request: JobRequest, for_org: OrgId, endpoint: str) -> Reply:
        job_id = _new_id(endpoint.removesuffix("s"))
        job = Job(revised_prompt=request.revised_prompt() if isinstance(request, VideoRequest) else None)
        self._jobs[job_id] = job
        job.task = asyncio.create_task(self._run_job(job, request, for_org))
        self._forget_old_jobs()
        return self._job_reply(job_id)

    async def _run_job(self, job: Job, request: JobRequest, for_org: OrgId) -> None:
        """Render a video or a sound; however this ends, the job is finished afterwards."""
        marker = next((word for word in MARKERS if word in request.prompt.lower()), None)
        if marker:
            kind, message = MARKERS[marker]
            job.fail(message, kind)
            return
        job.status = "in_progress"
        try:
            job.data = await self._render(request, for_org, job.report)
            job.progress = 1.0
            job.status = "completed"
        except WorkFailed as problem:
            job.fail(problem.message if problem.kind == "refused" else _RENDERER_FAILED)
        except Exception:  # a full disk, no free descriptor, a fault of ours
            log.exception("rendering failed")
            job.fail(_RENDERER_FAILED)
        finally:
            if not job.is_finished:  # the task itself was cancelled
                job.fail(_RENDERER_FAILED)

    async def _render(self, request: JobRequest, for_org: OrgId, report: Callable[[float], None]) -> bytes:
        name, arguments = request.task()
        made: bytes = (await self._run(name, arguments, for_org, report))["data"]
        return made

    def _job_reply(self, job_id: str) -> Reply:
        job = self._jobs.get(job_id)
        if job is None:
            return _reply({"message": "There is no such job."}, 404)
        job.is_reported = job.is_finished
        fields = {
            "id": job_id,
            "status": job.status,
            "progress": job.progress,
            "message": job.message,
            "kind": job.kind,
            "poll_after_seconds": 0.25,
        }
        return _reply({**fields, "data": job.data, "revised_prompt": job.revised_prompt} if job.data else fields)

    def _cancel(self, job_id: str) -> Reply:
        job = self._jobs.get(job_id)
        if job and job.task and not job.is_finished:
            job.status = "cancelled"
            job.task.cancel()
        return self._job_reply(job_id)

    def _forget_old_jobs(self) -> None:
        finished = [job_id for job_id, job in self._jobs.items() if job.is_finished]
        reported = [job_id for job_id in finished if self._jobs[job_id].is_reported]
        for job_id in {*reported[:-_REPORTED_JOBS_KEPT], *finished[:-_FINISHED_JOBS_KEPT]}:
            del self._jobs[job_id]


def _new_id(prefix: str) -> str:
    return f"{prefix}_{secrets.token_hex(12)}"


def _no_endpoint(name: str) -> Reply:
    return _reply({"message": f"There is no endpoint /{name}."}, 404)


def _reply(fields: dict[str, Any], status: int = 200) -> Reply:
    return Reply(status, {"content-type": "application/msgpack"}, msgspec.msgpack.encode(fields))
