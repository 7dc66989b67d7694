"""Kling: its own films, for a plain key or for the older pair `access:secret`, which signs a token for each call."""

import base64
import hashlib
import hmac
import re
import time
from collections.abc import Mapping
from dataclasses import replace

import msgspec

from penstock.providers.convert import first_and_last, number_text, plain_base64
from penstock.providers.spec import (
    File,
    FailureKind,
    Model,
    Operation,
    Param,
    Price,
    Provider,
    Reply,
    Result,
    Status,
    bearer,
    converted,
    fixed,
    duration,
    passthrough,
    price_list,
    frame,
    complete_table,
)

STATUS: dict[str, Status] = {
    "submitted": "queued",
    "processing": "in_progress",
    "succeed": "completed",
    "succeeded": "completed",
    "failed": "failed",
}
# What a code means where the HTTP status would mislead: accounts in arrears and used-up packs answer 429, too.
CODES: dict[int, FailureKind] = {
    1100: "broken",
    1101: "broken",
    1102: "broken",
    1300: "refused",
    1301: "refused",
    1302: "busy",
    1303: "busy",
    1304: "broken",
}
UNSAFE = re.compile(r"risk control|sensitive|moderat|polic|violat", re.IGNORECASE)  # there is no code for it in a task


def read(reply: Reply) -> Result:
    answer = reply.json
    if answer["code"] != 0:
        return Result(status="failed", failure_kind=CODES.get(answer["code"], "broken"), message=answer.get("message"))
    task = answer["data"]
    words = task.get("task_status_msg") or ""
    videos = (task.get("task_result") or {}).get("videos") or ()
    return Result(
        status=STATUS[task["task_status"]],
        ref={"id": task["task_id"]},
        upstream_id=task["task_id"],
        files=tuple(File(url=one["url"], content_type="video/mp4") for one in videos if one.get("url")),
        failure_kind="refused" if UNSAFE.search(words) else "broken",
        message=words,
    )


def error(reply: Reply) -> str | None:
    return str(reply.json["message"])


def kind(reply: Reply) -> FailureKind | None:
    return CODES.get(reply.json["code"])


def auth(key: str) -> Mapping[str, str]:
    access, _, secret = key.partition(":")
    return bearer(token(access, secret, int(time.time())) if secret else key)


def token(access: str, secret: str, now: int) -> str:
    """A JSON Web Token that works from a moment ago for half an hour."""
    claims = {"iss": access, "exp": now + 1800, "nbf": now - 5}
    signed = b".".join(_base64(msgspec.json.encode(part)) for part in ({"alg": "HS256", "typ": "JWT"}, claims))
    return (signed + b"." + _base64(hmac.digest(secret.encode(), signed, hashlib.sha256))).decode()


def _base64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


usd = price_list("Kling's developer documentation as others recorded it, 2026-11-15; not read there")
PROMPT, NOT = passthrough("prompt", required=True, max_length=2500), passthrough("negative_prompt", max_length=2500)
FIVE, FIFTEEN = duration(5, 10, convert=number_text, default=5), duration(*range(3, 16), convert=number_text, default=5)
SOUND = passthrough("sound", one_of=("on", "off"))
PICTURES = converted(
    "input_reference", ("image", "image_tail"), first_and_last(plain_base64), required=True, max_items=2
)
WORDS = Operation(
    task="video",
    send="POST /v1/videos/text2video",
    poll="GET /v1/videos/text2video/{id}",
    read=read,
    model_field="model_name",
    params=(),
    callback_field="callback_url",
    priced_extras=frozenset({"mode", "sound", "multi_prompt"}),
)
MOVES = replace(WORDS, send="POST /v1/videos/image2video", poll="GET /v1/videos/image2video/{id}")


def films(name: str, upstream: str, mode: str, seconds: Param, *rows: Param, prices: tuple[Price, ...]) -> list[Model]:
    """`std` is 720p and `pro` 1080p. A picture lends its shape to the film that it begins."""
    table = (PROMPT, NOT, seconds, fixed("mode", mode), *rows)
    words = replace(WORDS, params=complete_table("video", *table, frame("16:9 9:16 1:1")))
    moves = replace(MOVES, params=complete_table("video", *table, frame(), PICTURES))
    return [Model(id=name, upstream=upstream, prices=prices, op=op) for op in (words, moves)]


PROVIDER = Provider(
    callback_key_env="KLING_WEBHOOK_SECRET",  # where the console has one; otherwise they are unsigned
    slug="kling",
    name="Kling",
    docs="https://klingai.com/document-api",
    base_url="https://api-singapore.klingai.com",
    key_env="KLING_API_KEY",
    auth=auth,
    error_message=error,
    failure_kind=kind,
    models=(
        *films("kling-2.5-turbo", "kling-v2-5-turbo", "pro", FIVE, prices=(usd("0.07"),)),
        *films("kling-2.6", "kling-v2-6", "pro", FIVE, prices=(usd("0.07"),)),
        *films("kling-3", "kling-v3", "std", FIFTEEN, SOUND, prices=(usd("0.126", sound="on"), usd("0.084"))),
        *films("kling-3-pro", "kling-v3", "pro", FIFTEEN, SOUND, prices=(usd("0.168", sound="on"), usd("0.112"))),
    ),
)
