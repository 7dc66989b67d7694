"""Attack with large bodies: JSON, forms, images and chats."""

import base64
import json
import random
from collections.abc import Callable, Iterable
from typing import Any

from bench.attacks.target import (
    CHAT,
    EDITS,
    FORM_BYTES,
    IMAGES,
    JSON_BYTES,
    MIB,
    TRANSCRIPTS,
    VALID,
    VIDEOS,
    Begin,
    Target,
    add_posts,
    attack,
    json_body,
)
from bench.hostile_provider import noisy_png, progressive_jpeg, wide_png
from penstock.sound import wave

# ----------------------------------------------------------------------------------------------------------------- JSON


def _prompt(prompt: bytes, model: bytes = b"lab/image-small", rest: bytes = b"") -> bytes:
    """A JSON body with a prompt that is JSON already."""
    return b'{"model":"%b","size":"64x64"%b,"prompt":%b}' % (model, rest, prompt)


def _nested(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


add_posts("JSON: the longest prompt", IMAGES, lambda _: _prompt(b'"' + b"a" * JSON_BYTES + b'"'))
add_posts(
    "JSON: the longest prompt, with one emoji",
    IMAGES,
    lambda _: _prompt('"\U0001f600'.encode() + b"a" * JSON_BYTES + b'"'),
)
add_posts("JSON: only escapes", IMAGES, lambda _: _prompt(b'"' + rb"\u00e9" * (JSON_BYTES // 6) + b'"'))
add_posts(
    "JSON: the most values", IMAGES, lambda _: _prompt(b'"a"', rest=b',"extra":[' + b"0," * (JSON_BYTES // 2) + b"0]")
)
add_posts(
    "JSON: the most values that are accepted",
    IMAGES,
    lambda _: _prompt(b'"a"', rest=b',"extra":[' + b'"x",' * 49_000 + b"0]"),
)
add_posts("JSON: the deepest nesting", IMAGES, lambda _: _prompt(b'"a"', rest=b',"extra":' + _nested(JSON_BYTES // 2)))
add_posts(
    "JSON: nesting that is accepted, many times",
    IMAGES,
    lambda _: _prompt(b'"a"', rest=b',"extra":[' + b",".join([_nested(60)] * 4000) + b"]"),
)
add_posts("JSON: one long number", IMAGES, lambda _: _prompt(b'"a"', rest=b',"extra":' + b"1" * JSON_BYTES))
add_posts(
    "JSON: the most names",
    IMAGES,
    lambda _: _prompt(b'"a"', rest=b',"extra":' + json.dumps({str(n): n for n in range(49_000)}).encode()),
)
add_posts("JSON: blanks", IMAGES, lambda _: b" " * JSON_BYTES + _prompt(b'"a"'))

# ---------------------------------------------------------------------------------------------------------------- forms

_BOUNDARY = b"----------------------------neighbours"
FORM = f"multipart/form-data; boundary={_BOUNDARY.decode()}"


def _part(name: str, value: bytes, filename: str = "") -> bytes:
    file = f'; filename="{filename}"\r\ncontent-type: image/png' if filename else ""
    return b'--%b\r\ncontent-disposition: form-data; name="%b"%b\r\n\r\n%b\r\n' % (
        _BOUNDARY,
        name.encode(),
        file.encode(),
        value,
    )


def form(fields: Iterable[tuple[str, bytes]], files: Iterable[tuple[str, bytes]] = ()) -> tuple[bytes, str]:
    parts = [_part(*each) for each in fields]
    parts += [_part(name, data, "image.png") for name, data in files]
    return b"".join(parts) + b"--" + _BOUNDARY + b"--\r\n", FORM


def _edit(*files: bytes, model: str = "lab/edit-small") -> bytes:
    fields = [("model", model.encode()), ("prompt", b"a hat"), ("size", b"64x64")]
    return form(fields, [("image[]", data) for data in files])[0]


def _file_of(data: bytes) -> bytes:
    return (data * (FORM_BYTES // len(data)))[:FORM_BYTES]


add_posts("form: the largest file", EDITS, lambda _: _edit(bytes(FORM_BYTES)), FORM)
add_posts("form: the most files", EDITS, lambda _: _edit(*[bytes(FORM_BYTES // 16)] * 16), FORM)
add_posts(
    "form: the most fields",
    EDITS,
    lambda _: form([(f"field {number}", b"a" * (256 * 1024)) for number in range(64)])[0],
    FORM,
)
add_posts("form: the most parts", EDITS, lambda _: _file_of(_part("a", b"")), FORM)
add_posts("form: nearly boundaries", EDITS, lambda _: _edit(_file_of(b"\r\n--" + _BOUNDARY[:-1])), FORM)
add_posts("form: only line ends", EDITS, lambda _: _edit(_file_of(b"\r\n")), FORM)
add_posts("form: only carriage returns", EDITS, lambda _: _edit(_file_of(b"\r")), FORM)
add_posts(
    "form: a header without an end",
    EDITS,
    lambda _: b"--" + _BOUNDARY + b"\r\ncontent-disposition: " + b"a" * FORM_BYTES,
    FORM,
)


@attack("form: in crumbs")
async def _send_crumbs(target: Target, begin: Begin) -> None:
    body = _edit(bytes(256 * 1024))
    pieces = [body[start : start + 16] for start in range(0, len(body), 16)]
    await begin()
    await target.repeat(lambda: target.call("POST", EDITS, pieces, {"content-type": FORM}))


# --------------------------------------------------------------------------------------------------------------- sounds


def _heard(size: int) -> bytes:
    """A form with a sound of 22 minutes for each 60 MiB: noise, which cannot be compressed."""
    samples = random.Random(7).randbytes(MIB) * (size // MIB)
    file = wave.header(24_000, len(samples)) + samples
    return form([("model", b"lab/listen-small")], [("file", file)])[0]


@attack("transcript: one sound of 59 MiB")
async def _upload_sound(target: Target, begin: Begin) -> None:
    body = _heard(59 * MIB)
    await begin()
    await target.repeat(lambda: target.call("POST", TRANSCRIPTS, body, {"content-type": FORM}), at_once=1)


# --------------------------------------------------------------------------------------------------------------- images


def data_uri(data: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(data).decode()


add_posts("image: the largest file, dry run", f"{EDITS}?dryRun=true", lambda _: _edit(noisy_png()), FORM)
add_posts("image: forty megapixels, dry run", f"{EDITS}?dryRun=true", lambda _: _edit(wide_png()), FORM)
add_posts("image: progressive JPEG, dry run", f"{EDITS}?dryRun=true", lambda _: _edit(progressive_jpeg()), FORM)
add_posts("image: the largest file", EDITS, lambda _: _edit(noisy_png()), FORM)
add_posts(
    "image: the largest data URI",
    VIDEOS,
    lambda _: json_body(**VALID[VIDEOS], input_reference={"image_url": data_uri(noisy_png(2450))}),
)
add_posts(
    "image: a data URI of semicolons",
    VIDEOS,
    lambda _: json_body(**VALID[VIDEOS], input_reference={"image_url": "data:" + ";a" * (JSON_BYTES // 2)}),
)
add_posts(
    "image: a data URI of letters",
    VIDEOS,
    lambda _: json_body(**VALID[VIDEOS], input_reference={"image_url": "data:a/" + "a" * JSON_BYTES}),
)


def _fetched(name: str) -> Callable[[Target], bytes]:
    def body(target: Target) -> bytes:
        url = f"http://127.0.0.1:{target.provider_port}/files/{name}"
        return json_body(**VALID[VIDEOS], input_reference=[{"image_url": url}])

    return body


add_posts("image: a URL with a gzip bomb", f"{VIDEOS}?dryRun=true", _fetched("bomb"))
add_posts("image: a URL with empty gzip members", f"{VIDEOS}?dryRun=true", _fetched("members"))
add_posts("image: a URL in chunks of one byte", f"{VIDEOS}?dryRun=true", _fetched("crumbs"))
add_posts("image: a URL with forty megapixels", f"{VIDEOS}?dryRun=true", _fetched("wide"))
add_posts("image: drawings by the built-in provider", IMAGES, lambda _: json_body(
    model="atelier/sketch", prompt="a fox in a forest, a lake, mountains", size="1792x1024"))  # fmt: skip

# ----------------------------------------------------------------------------------------------------------------- chat


def chat_body(content: Any, model: str = "lab/chat-small", **fields: Any) -> bytes:
    return json_body(model=model, messages=[{"role": "user", "content": content}], max_tokens=9, **fields)


add_posts("chat: the longest message", CHAT, lambda _: chat_body("a" * JSON_BYTES))
add_posts("chat: the most messages", CHAT, lambda _: json_body(
    model="lab/chat-small", messages=[{"role": "user", "content": "a"}] * 24_000, max_tokens=9))  # fmt: skip
add_posts("chat: images in base64", CHAT, lambda _: chat_body(
    [{"type": "image_url", "image_url": {"url": data_uri(noisy_png(700))}}] * 16))  # fmt: skip
add_posts("chat: echo with log probabilities", CHAT, lambda _: json_body(
    model="atelier/echo", messages=[{"role": "user", "content": "word " * 60_000}], logprobs=True,
    top_logprobs=20))  # fmt: skip
add_posts("chat: echo of the longest message", CHAT, lambda _: json_body(
    model="atelier/echo", messages=[{"role": "user", "content": "word " * (8 * MIB // 5)}]))  # fmt: skip
