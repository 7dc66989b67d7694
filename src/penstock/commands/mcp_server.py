"""The tools that agents get: models and prices, images, edits, upscales, videos, sounds, transcripts, and requests.

Needs the extra `mcp`. A tool returns the gateway's response as text, a link to each file, and a small preview of each
image that can be decoded, which is done in a confined child process as in the gateway.
"""

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial, wraps
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ContentBlock, ImageContent, ResourceLink, TextContent

from penstock import __version__
from penstock.client.failures import CallFailed
from penstock.client.results import Kind
from penstock.commands.call_options import given, image_url
from penstock.commands.gateway_client import GatewayClient
from penstock.imaging.formats import SVG_TYPE
from penstock.imaging.workers import WorkerPool, WorkFailed
from penstock.values import OrgId

_IMAGES = "/compat/v1/images/generations"
_EDITS = "/compat/v1/images/edits"
_VIDEOS = "/compat/v1/videos"
_SPEECH = "/compat/v1/audio/speech"
_TRANSCRIPTIONS = "/compat/v1/audio/transcriptions"
_SOUNDS = "/compat/v1/audio/generations"
_VOICES = "/compat/v1/audio/voices"
_PREVIEW_SIDE = 384
_NO_ORG = OrgId("")  # all previews are for the agents of one key
_URLS = ("https://", "http://", "data:")

_INSTRUCTIONS = (
    "Generates, edits and enlarges images, makes videos, sounds and music, and speaks texts with a Penstock gateway. "
    "Call list_models first to learn the ids of models and what they cost, and estimate_cost before anything expensive."
)


def build_server(gateway: GatewayClient, *, reads_files: bool) -> MCPServer:
    """Return a server whose tools call the gateway; with `reads_files`, images may be files of this machine."""
    server = MCPServer("penstock", version=__version__, instructions=_INSTRUCTIONS)
    tools = _Tools(gateway, reads_files)
    for tool in (
        tools.list_models,
        tools.estimate_cost,
        tools.generate_image,
        tools.edit_image,
        tools.upscale_image,
        tools.make_video,
        tools.make_speech,
        tools.make_sound,
        tools.transcribe_audio,
        tools.list_voices,
        tools.get_request,
        tools.verify_file,
    ):
        server.tool(structured_output=False)(_explaining(tool))
    return server


def _explaining(tool: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """The tool, whose refusals the agent can read: the library hides the text of any other error."""

    @wraps(tool)
    async def run(*arguments: Any, **fields: Any) -> Any:
        try:
            return await tool(*arguments, **fields)
        except (CallFailed, OSError) as problem:
            raise ToolError(str(problem)) from None

    return run


class _Tools:
    """The tools. Their docstrings and parameters are what an agent reads."""

    def __init__(self, gateway: GatewayClient, reads_files: bool) -> None:
        self._gateway = gateway
        self._reads_files = reads_files

    async def list_models(self, mode: str | None = None) -> str:
        """List models with what they can do and what they cost.

        mode: only models of this mode: text-to-image, image-edit, upscale, text-to-video, image-to-video,
        video-to-video, video-extension, text-to-speech, text-to-sound, text-to-music, transcription, translation or
        chat.
        """
        models = (await asyncio.to_thread(self._gateway.get, "/compat/v1/models")).body["data"]
        shown = ("id", "name", "description", "modes", "pricing")
        wanted = [model for model in models if mode is None or mode in model["modes"]]
        return json.dumps([{name: model[name] for name in shown if name in model} for model in wanted])

    async def estimate_cost(
        self,
        model: str,
        kind: str,
        prompt: str = "",
        images: list[str] | None = None,
        parameters: dict[str, Any] | None = None,
    ) -> str:
        """Return what a call would cost, in millionths of a dollar, and make nothing.

        kind: image, edit, upscale, video, sound, also for music, or speech, whose text is the prompt. parameters: other
        fields of the call, such as size, n or seconds.
        """
        paths = {"image": _IMAGES, "edit": _EDITS, "upscale": _EDITS, "video": _VIDEOS}
        paths |= {"speech": _SPEECH, "sound": _SOUNDS}
        if kind not in paths:
            raise CallFailed(f"kind must be one of: {', '.join(paths)}")
        sources = self._inputs(images or [])
        inputs: dict[str, Any] = {"image": sources or None}
        if kind == "video":
            inputs = {"input_reference": [{"image_url": source} for source in sources] or None}
        text = "input" if kind == "speech" else "prompt"
        body = {"model": model, **given({text: prompt or None, **inputs}), **(parameters or {})}
        return json.dumps((await asyncio.to_thread(self._gateway.post, paths[kind], body, dryRun=True)).body)

    async def generate_image(
        self,
        prompt: str,
        model: str,
        size: str | None = None,
        n: int | None = None,
        parameters: dict[str, Any] | None = None,
    ) -> list[ContentBlock]:
        """Generate images from a prompt.

        size: WIDTHxHEIGHT or a proportion such as 16:9. parameters: other fields that the model takes.
        """
        body = {"model": model, "prompt": prompt, **given({"size": size, "n": n}), **(parameters or {})}
        return await self._images(_IMAGES, body)

    async def edit_image(
        self,
        prompt: str,
        images: list[str],
        model: str,
        mask: str | None = None,
        size: str | None = None,
        parameters: dict[str, Any] | None = None,
    ) -> list[ContentBlock]:
        """Edit images: say in the prompt what to change.

        images: HTTPS URLs, data URIs or paths of files. mask: a PNG whose transparent pixels are the area to edit.
        """
        sources = {"image": self._inputs(images), "mask": None if mask is None else self._inputs([mask])[0]}
        body = {"model": model, "prompt": prompt, **given({**sources, "size": size}), **(parameters or {})}
        return await self._images(_EDITS, body)

    async def upscale_image(
        self, image: str, model: str, scale_factor: float | None = None, parameters: dict[str, Any] | None = None
    ) -> list[ContentBlock]:
        """Enlarge an image: an HTTPS URL, a data URI or the path of a file."""
        body = {"model": model, "image": self._inputs([image]), **given({"scale_factor": scale_factor})}
        return await self._images(_EDITS, {**body, **(parameters or {})})

    async def make_video(
        self,
        prompt: str,
        model: str,
        context: Context,
        seconds: str | float | None = None,
        size: str | None = None,
        images: list[str] | None = None,
        parameters: dict[str, Any] | None = None,
    ) -> list[ContentBlock]:
        """Make a video and wait until it is done; progress is reported meanwhile.

        images: reference images, as HTTPS URLs, data URIs or paths of files.
        """
        references = [{"image_url": source} for source in self._inputs(images or [])] or None
        fields = given({"seconds": _number_text(seconds), "size": size, "input_reference": references})
        body = {"model": model, "prompt": prompt, **fields, **(parameters or {})}
        created = await asyncio.to_thread(self._gateway.post, _VIDEOS, body)
        return _job_blocks(await _await_job(self._gateway, created.body["id"], "video", context))

    async def make_speech(
        self,
        text: str,
        model: str,
        context: Context,
        voice: str | None = None,
        response_format: str | None = None,
        parameters: dict[str, Any] | None = None,
    ) -> list[ContentBlock]:
        """Speak a text into a file, and wait until it is done.

        voice: as list_voices names it. response_format: mp3, opus, aac, flac or wav. parameters: other fields, such as
        speed or instructions.
        """
        fields = given({"voice": voice, "response_format": response_format})
        body = {"model": model, "input": text, **fields, **(parameters or {})}
        created = await asyncio.to_thread(self._gateway.start, _SPEECH, body)
        return _job_blocks(await _await_job(self._gateway, created.body["id"], "sound", context))

    async def transcribe_audio(
        self,
        audio: str,
        model: str,
        response_format: str = "json",
        parameters: dict[str, Any] | None = None,
    ) -> str:
        """Write down what is said in a sound or a video.

        audio: an HTTPS URL, a data URI or a file. response_format: json for the text, verbose_json for its times,
        diarized_json for who speaks. parameters: other fields, such as language or prompt.
        """
        (source,) = await asyncio.to_thread(self._inputs, [audio], "a sound")
        sound = {"data": source} if source.startswith("data:") else {"url": source}
        body = {"model": model, "input_audio": sound, "response_format": response_format, **(parameters or {})}
        return json.dumps((await asyncio.to_thread(self._gateway.post, _TRANSCRIPTIONS, body)).body)

    async def make_sound(
        self,
        prompt: str,
        model: str,
        context: Context,
        seconds: str | float | None = None,
        lyrics: str | None = None,
        output_format: str | None = None,
        parameters: dict[str, Any] | None = None,
    ) -> list[ContentBlock]:
        """Make a sound effect or a piece of music, and wait until it is done; progress is reported meanwhile.

        lyrics: the words of a song, for models that sing. output_format: mp3, opus, aac, flac or wav. parameters: other
        fields, such as loop, instrumental or seed.
        """
        fields = given({"seconds": _number_text(seconds), "lyrics": lyrics, "output_format": output_format})
        body = {"model": model, "prompt": prompt, **fields, **(parameters or {})}
        created = await asyncio.to_thread(self._gateway.post, _SOUNDS, body)
        return _job_blocks(await _await_job(self._gateway, created.body["id"], "sound", context))

    async def list_voices(
        self, model: str | None = None, search: str | None = None, language: str | None = None
    ) -> str:
        """List voices, with the models that have them and the names of OpenAI's voices that they speak for.

        model: only voices of this model. search: only voices with these words. language: only voices that speak it,
        such as en.
        """
        asked = {"model": model, "search": search, "language": language}
        found = await asyncio.to_thread(partial(self._gateway.get, _VOICES, **asked))
        shown = ("id", "name", "provider", "models", "openai_names", "languages", "gender", "description")
        return json.dumps([{name: voice[name] for name in shown} for voice in found.body["data"]])

    async def get_request(self, request_id: str) -> str:
        """Return the record of a request: status, cost, attempts and errors."""
        return json.dumps((await asyncio.to_thread(self._gateway.get_request, request_id)).body)

    async def verify_file(self, file: str) -> str:
        """Return where an image, a video or a sound came from: who signed it, what it was made with, and from what.

        file: an HTTPS URL, a data URI or the path of a file.
        """
        (source,) = self._inputs([file], "file")
        body = {"file" if source.startswith("data:") else "url": source}
        return json.dumps((await asyncio.to_thread(self._gateway.post, "/v1/verify", body)).body)

    async def _images(self, path: str, body: Mapping[str, Any]) -> list[ContentBlock]:
        result = (await asyncio.to_thread(self._gateway.post, path, {**body, "response_format": "url"})).body
        blocks: list[ContentBlock] = [_text(result)]
        is_svg = result["output_format"] == "svg"
        content_type = SVG_TYPE if is_svg else f"image/{result['output_format']}"
        async with WorkerPool() as pool:
            for item in result["data"]:
                content = await asyncio.to_thread(self._fetch, item["url"])
                blocks.append(_link(item["url"], content_type, len(content)))
                if not is_svg:
                    blocks += await _preview(pool, content)
        return blocks

    def _fetch(self, url: str) -> bytes:
        return b"".join(part for _, part in self._gateway.download(url))

    def _inputs(self, images: Sequence[str], what: str = "an image") -> list[str]:
        """Return images or sounds as the gateway takes them. Files of this machine are read only for an agent that runs
        on it.
        """
        for image in images:
            if not image.startswith(_URLS) and (image == "-" or not self._reads_files):
                raise CallFailed(f"{what} must be an HTTPS URL or a data URI")
        return [image_url(image) for image in images]


async def _await_job(gateway: GatewayClient, job_id: str, kind: Kind, context: Context) -> dict[str, Any]:
    """A video or a sound when it has ended."""
    while True:
        state = await asyncio.to_thread(gateway.get_job, job_id, kind)
        if state.pause_seconds is None:
            return state.job
        await context.report_progress(state.job.get("progress") or 0, 100, state.job["status"])
        await asyncio.sleep(state.pause_seconds)


def _job_blocks(found: Mapping[str, Any]) -> list[ContentBlock]:
    """A video or a sound that has ended, and a link to each of its files."""
    if found["status"] == "failed":
        raise CallFailed(f"{found['error']['message']} ({found['error']['code']})")
    outputs = found.get("outputs") or [found["output"]]
    links = [_link(output["url"], output["content_type"], output["size_bytes"]) for output in outputs]
    return [_text(found), *links]


async def _preview(pool: WorkerPool, content: bytes) -> list[ImageContent]:
    """A small copy of an image; none of one that cannot be decoded, whose link is of use all the same."""
    try:
        small = await pool.run("image.shrink", for_org=_NO_ORG, data=content, side=_PREVIEW_SIDE)
    except WorkFailed:
        return []
    data = base64.b64encode(small["data"]).decode()
    return [ImageContent(type="image", data=data, mime_type=small["content_type"])]


def _text(value: Mapping[str, Any]) -> TextContent:
    return TextContent(type="text", text=json.dumps(value))


def _link(url: str, content_type: str, size: int) -> ResourceLink:
    name = url.partition("?")[0].rpartition("/")[2]
    return ResourceLink(type="resource_link", uri=url, name=name, mime_type=content_type, size=size)


def _number_text(value: str | float | None) -> str | None:
    """A number as the API takes it, in text: 2.0 is sent as "2"."""
    return f"{value:g}" if isinstance(value, int | float) else value
