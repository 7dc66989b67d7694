"""Atelier: the built-in provider, whose images, videos, sounds and texts are made on this machine, without a key."""

from dataclasses import replace
from operator import attrgetter
from typing import Any

import msgspec

from penstock.providers.convert import each_image, first_image, pixels, seconds_between
from penstock.providers.openai_compatible import CHAT, read_nothing
from penstock.providers.spec import (
    ANY_SOUND_FORMAT,
    NEVER_SOUND,
    File,
    LocalService,
    Model,
    Operation,
    Price,
    Provider,
    Reply,
    Result,
    Source,
    Speech,
    Transcription,
    complete_table,
    converted,
    emulated,
    ignored,
    passthrough,
)
from penstock.providers.transcription import DETAILS, read_openai
from penstock_atelier import server
from penstock_atelier.voice.synthesis import RATE, VOICES


def read_images(reply: Reply) -> Result:
    fields = msgspec.msgpack.decode(reply.body)
    return Result(upstream_id=fields["id"], files=tuple(File(**image) for image in fields["images"]))


def read_video(reply: Reply) -> Result:
    return _read_job(reply, "video/mp4")


def read_sound(reply: Reply) -> Result:
    return _read_job(reply, "audio/wav")


def _read_job(reply: Reply, content_type: str) -> Result:
    """Submission, poll and cancellation are answered in the same form."""
    job = msgspec.msgpack.decode(reply.body)
    made = {"content_type": content_type, "revised_prompt": job.get("revised_prompt")}
    files = (File(data=job["data"], **made),) if job.get("data") else ()
    return Result(
        status=job["status"],
        ref={"id": job["id"]},
        upstream_id=job["id"],
        files=files,
        failure_kind=job.get("kind", "broken"),
        message=job.get("message"),
        progress=job.get("progress"),
        poll_after_seconds=job.get("poll_after_seconds"),
    )


def error_text(reply: Reply) -> str | None:
    return str(msgspec.msgpack.decode(reply.body)["message"])


_data = attrgetter("data")


def _without_images(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages with nothing but the type of each image, which is all that the echo uses of it."""
    return [
        {**message, "content": [_without_url(part) for part in message["content"]]}
        if isinstance(message.get("content"), list)
        else message
        for message in messages
    ]


def _without_url(part: dict[str, Any]) -> dict[str, Any]:
    return {"type": "image_url"} if part["type"] == "image_url" else part


_WAVE = replace(ANY_SOUND_FORMAT, default="wav")
_PROMPT = passthrough("prompt", required=True, max_length=32_000)
_SEED = passthrough("seed", low=0, high=2**32 - 1, default=0)
_N = emulated("n", to="n", high=10)
_DRAWN = (_PROMPT, converted("frame", to=("width", "height"), convert=pixels(min_side=16, max_side=4096)), _N, _SEED)
SKETCH = Operation(
    task="image",
    send="POST /sketch",
    body="msgpack",
    read=read_images,
    safe_to_resubmit=True,
    takes_extras=False,
    model_field=None,
    params=complete_table("image", *_DRAWN),
)
RETOUCH = replace(
    SKETCH,
    task="edit",
    send="POST /retouch",
    params=complete_table(
        "edit",
        *_DRAWN,
        converted("images", to="images", convert=each_image(_data), required=True, max_items=8),
        converted("mask", to="mask", convert=_data),
    ),
)
ENLARGE = replace(
    SKETCH,
    task="upscale",
    send="POST /enlarge",
    params=complete_table(
        "upscale",
        converted("images", to="images", convert=each_image(_data), required=True, max_items=1),
        passthrough("scale_factor", low=1, high=8, default=2),
        _N,
        *ignored("mask"),
    ),
)
CLIP = Operation(
    task="video",
    send="POST /videos",
    body="msgpack",
    poll="GET /videos/{id}",
    cancel="DELETE /videos/{id}",
    read=read_video,
    safe_to_resubmit=True,
    takes_extras=False,
    model_field=None,
    poll_seconds=0.5,
    libraries=("av",),
    params=complete_table(
        "video",
        _PROMPT,
        converted("seconds", to="seconds", convert=seconds_between(1, 20, float), default=4, low=1, high=20),
        converted(
            "frame", to=("width", "height"), convert=pixels(720, 2, min_side=64, max_side=1920), default="1280x720"
        ),
        converted("input_reference", to="image", convert=first_image(_data), max_items=1),
        _SEED,
        NEVER_SOUND,
        *ignored("negative_prompt"),
    ),
)
SOUND = replace(
    CLIP,
    task="sound",
    send="POST /sounds",
    poll="GET /sounds/{id}",
    cancel="DELETE /sounds/{id}",
    read=read_sound,
    poll_seconds=0.25,
    libraries=(),
    params=complete_table(
        "sound",
        _PROMPT,
        converted("seconds", to="seconds", convert=seconds_between(0.5, 30, float), default=5, low=0.5, high=30),
        passthrough("loop"),
        _SEED,
        _WAVE,
    ),
)
MUSIC = replace(
    SOUND,
    send="POST /music",
    poll="GET /music/{id}",
    cancel="DELETE /music/{id}",
    settings={"modes": ("text-to-music",)},
    params=complete_table(
        "sound",
        _PROMPT,
        converted("seconds", to="seconds", convert=seconds_between(3, 120, float), default=20, low=3, high=120),
        _SEED,
        _WAVE,
    ),
)
ECHO = replace(
    CHAT,
    send="POST /echo",
    safe_to_resubmit=True,
    takes_extras=False,
    max_body_bytes=64 * 1024,
    params=(
        converted("messages", to="messages", convert=_without_images),
        passthrough("response_format", one_of=("text", "json_object", "json_schema")),
        *(passthrough(name) for name in ("max_completion_tokens", "n")),
        *ignored("parallel_tool_calls", "store", "metadata", "reasoning_effort", "verbosity", "prompt_cache_key"),
        *ignored("logit_bias", "safety_identifier", "prompt_cache_retention", "function_call"),
    ),
)
SPEAK = Operation(
    task="speech",
    send="POST /speak",
    body="msgpack",
    read=read_nothing,
    safe_to_resubmit=True,
    takes_extras=False,
    model_field=None,
    params=complete_table(
        "speech",
        passthrough("input", required=True),
        passthrough("voice"),
        emulated("speed", to="speed"),
    ),
    speech=Speech(
        formats={"pcm": {}},
        max_characters=20_000,
        voices=dict.fromkeys(VOICES, ""),
        openai_voices={name: name for name in VOICES},
        speeds=(0.5, 2),
        pcm_rate=RATE,
        latin_only=True,
    ),
)
LISTEN = Operation(
    task="transcription",
    send="POST /listen",
    body="msgpack",
    read=read_nothing,
    safe_to_resubmit=True,
    takes_extras=False,
    model_field=None,
    libraries=("av",),
    params=complete_table("transcription", converted("file", to="file", convert=_data, required=True)),
    transcription=Transcription(details={detail: {} for detail in DETAILS}, read=read_openai),
)
LISTEN_IN_ENGLISH = replace(
    LISTEN,
    task="translation",
    params=complete_table("translation", converted("file", to="file", convert=_data, required=True)),
)
_SOURCE = Source("the gateway's own price, so that costs show before another provider is set up")
_IMAGE_PRICE = (Price(unit="image", usd="0.001", source=_SOURCE),)

PROVIDER = Provider(
    slug="atelier",
    name="Atelier",
    docs="docs/atelier.md",
    base_url="atelier:",
    error_message=error_text,
    local=LocalService(start=server.AtelierServer, tasks=server.TASKS),
    mocks=True,
    models=(
        Model(
            id="atelier/sketch",
            upstream="sketch",
            op=SKETCH,
            prices=_IMAGE_PRICE,
            name="Atelier Sketch",
            description="Draws an image from the words of a prompt. A renderer, not a model.",
        ),
        Model(
            id="atelier/retouch",
            upstream="retouch",
            op=RETOUCH,
            prices=_IMAGE_PRICE,
            name="Atelier Retouch",
            description="Edits images within a mask, or combines several.",
        ),
        Model(
            id="atelier/enlarge",
            upstream="enlarge",
            op=ENLARGE,
            prices=_IMAGE_PRICE,
            name="Atelier Enlarge",
            description="Enlarges an image with a resampler.",
        ),
        Model(
            id="atelier/clip",
            upstream="clip",
            op=CLIP,
            name="Atelier Clip",
            prices=(Price(unit="second", usd="0.001", source=_SOURCE),),
            description="Renders an H.264 video from a prompt, or from a prompt and an image.",
        ),
        Model(
            id="atelier/echo",
            upstream="echo",
            op=ECHO,
            name="Atelier Echo",
            prices=(Price(unit="token", usd="0.0000002", input_usd="0.0000001", source=_SOURCE),),
            description="Echoes your last message. A stand-in for a chat model.",
        ),
        Model(
            id="atelier/voice",
            upstream="voice",
            op=SPEAK,
            name="Atelier Voice",
            prices=(Price(unit="character", usd="0.000001", source=_SOURCE),),
            description="Speaks English in thirteen voices, by rules. A renderer, not a model.",
        ),
        Model(
            id="atelier/sound",
            upstream="sound",
            op=SOUND,
            name="Atelier Sound",
            prices=(Price(unit="second", usd="0.0002", source=_SOURCE),),
            description="Makes the noises that a prompt names, such as rain, bells or footsteps. A renderer.",
        ),
        Model(
            id="atelier/music",
            upstream="music",
            op=MUSIC,
            name="Atelier Music",
            prices=(Price(unit="second", usd="0.0002", source=_SOURCE),),
            description="Composes and plays music in the key, tempo and style of a prompt, by rules. A renderer.",
        ),
        *(
            Model(
                id="atelier/listen",
                upstream="listen",
                op=op,
                name="Atelier Listen",
                prices=(Price(unit="second", usd="0.00001", source=_SOURCE),),
                description="Says when a sound has speech, other sound or silence. It knows no words.",
            )
            for op in (LISTEN, LISTEN_IN_ENGLISH)
        ),
    ),
)
