"""Make calls of what a caller asks for: paths, bodies, inputs, and the key that lets a paid call be repeated."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict
from urllib.parse import urlencode
from uuid import uuid4

from penstock.client.files import Input, input_url

IMAGES = "/compat/v1/images/generations"
EDITS = "/compat/v1/images/edits"
VIDEOS = "/compat/v1/videos"
SPEECH = "/compat/v1/audio/speech"

PricedKind = Literal["image", "edit", "upscale", "video", "speech"]
_KEY_HEADER = "Idempotency-Key"


class CommonFields(TypedDict, total=False):
    """What every paid call takes."""

    idempotency_key: str  # instead of one that the client makes
    labels: Mapping[str, str]
    provider: Mapping[str, Any]  # routing
    session_id: str
    user: str
    media_retention: str
    webhook_url: str
    extra: Mapping[str, Any]  # any other field, such as one of a provider


class ImageFields(CommonFields, total=False):
    """What images take; the schema of a model says which of them it has."""

    n: int
    size: str
    aspect_ratio: str
    resolution: str
    quality: str
    seed: int
    negative_prompt: str
    output_format: Literal["png", "jpeg", "gif", "webp", "avif", "svg"]
    output_compression: int
    thinking: str
    prompt_enhancement: Literal["on", "off"]


class VideoFields(CommonFields, total=False):
    """What videos take: `image` and `last_frame` are frames, `references` images of what it shows. `video` is edited,
    extended or upscaled.
    """

    n: int
    seconds: float | str
    size: str
    aspect_ratio: str
    resolution: str
    seed: int
    negative_prompt: str
    generate_audio: bool
    scale_factor: float
    metadata: Mapping[str, str]
    image: Input
    last_frame: Input
    references: Sequence[Input]
    video: Input
    video_role: Literal["edit", "extend"]


class SpeechFields(CommonFields, total=False):
    """What speech takes."""

    voice: str
    response_format: Literal["mp3", "opus", "aac", "flac", "wav", "pcm"]
    speed: float
    instructions: str
    language: str
    sample_rate: int


@dataclass(frozen=True, slots=True)
class Call:
    """A request to the gateway, before it has a URL and the caller's key."""

    method: str
    path: str
    body: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    form: bytes | None = None  # instead of a JSON body

    @property
    def may_be_repeated(self) -> bool:
        """Whether it can be sent again without being made or charged twice."""
        return self.method != "POST" or _KEY_HEADER in self.headers


def get(path: str, query: Mapping[str, Any] | None = None) -> Call:
    """Read a resource."""
    return Call("GET", with_query(path, query or {}))


def with_query(path: str, query: Mapping[str, Any]) -> str:
    """Add parameters to a path; one that is None is left out."""
    given = {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in query.items()
        if value is not None
    }
    return f"{path}?{urlencode(given)}" if given else path


# --------------------------------------------------------------------------------------------------------- paid calls


def image(prompt: str, model: str, fields: ImageFields) -> Call:
    return _paid(IMAGES, {"model": model, "prompt": prompt}, fields)


def edit(prompt: str, images: Input | Sequence[Input], model: str, mask: Input | None, fields: ImageFields) -> Call:
    body = {"model": model, "prompt": prompt, "image": _input_urls(images), "mask": mask and input_url(mask)}
    return _paid(EDITS, body, fields)


def upscale(given: Input, model: str, scale_factor: float | None, fields: ImageFields) -> Call:
    return _paid(EDITS, {"model": model, "image": _input_urls(given), "scale_factor": scale_factor}, fields)


def video(prompt: str, model: str, fields: VideoFields) -> Call:
    others = {name: value for name, value in fields.items() if name not in _VIDEO_INPUTS}
    return _paid(VIDEOS, {"model": model, "prompt": prompt or None, "input_reference": _references(fields)}, others)


def speech(text: str, model: str, fields: SpeechFields) -> Call:
    """Speech in JSON: the URL of a file that is kept, so that the call can be repeated."""
    return _paid(SPEECH, {"model": model, "input": text}, fields, accept="application/json")


def streamed_speech(text: str, model: str, fields: SpeechFields) -> Call:
    """Speech as bytes while it is made; it is not kept, so it has no key and is not repeated."""
    call = _paid(SPEECH, {"model": model, "input": text}, fields)
    return Call("POST", SPEECH, call.body)


def started(call: Call) -> Call:
    """The same call, which does not wait for its result."""
    headers = {name: value for name, value in call.headers.items() if name != "Accept"}
    return Call(call.method, call.path, call.body, {**headers, "Prefer": "respond-async"})


def dry_run(call: Call) -> Call:
    """The same call, which only asks for its price."""
    return Call("POST", f"{call.path}?dryRun=true", call.body)


def for_price(kind: PricedKind, prompt: str, model: str, fields: Mapping[str, Any]) -> Call:
    """The call whose price is asked for; the inputs are among the fields."""
    rest: Any = dict(fields)
    if kind == "image":
        return image(prompt, model, rest)
    if kind == "edit":
        return edit(prompt, rest.pop("images"), model, rest.pop("mask", None), rest)
    if kind == "upscale":
        return upscale(rest.pop("image"), model, rest.pop("scale_factor", None), rest)
    if kind == "video":
        return video(prompt, model, rest)
    if kind == "speech":
        return speech(prompt, model, rest)
    raise ValueError(f"the kind of a call must be image, edit, upscale, video or speech, not {kind!r}")


def _paid(path: str, body: Mapping[str, Any], fields: Mapping[str, Any], *, accept: str = "") -> Call:
    given = {**body, **fields}
    key = given.pop("idempotency_key", None) or f"py_{uuid4().hex}"
    given |= given.pop("extra", {})
    headers = {_KEY_HEADER: str(key), **({"Accept": accept} if accept else {})}
    return Call("POST", path, {name: value for name, value in given.items() if value is not None}, headers)


# ------------------------------------------------------------------------------------------------------------- inputs

_VIDEO_INPUTS = ("image", "last_frame", "references", "video", "video_role")


def _input_urls(given: Input | Sequence[Input]) -> list[str]:
    if isinstance(given, Sequence) and not isinstance(given, (str, bytes)):
        return [input_url(each) for each in given]
    return [input_url(given)]


def _references(fields: VideoFields) -> Any:
    """The `input_reference` of a video; None if it has no input."""
    if "video" in fields:
        role = {"role": fields["video_role"]} if "video_role" in fields else {}
        return {"video_url": input_url(fields["video"], "video/mp4"), **role}
    roles = [("first_frame", fields["image"])] if "image" in fields else []
    roles += [("last_frame", fields["last_frame"])] if "last_frame" in fields else []
    roles += [("reference", each) for each in fields.get("references", ())]
    return [{"image_url": input_url(each), "role": role} for role, each in roles] or None
