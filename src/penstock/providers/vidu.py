"""Vidu: Q3's films, with an endpoint for each number of pictures; tasks tell what they cost in credits."""

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

from penstock.providers.convert import data_uri, each_image
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
    converted,
    header,
    duration,
    passthrough,
    price_list,
    frame,
    complete_table,
)

STATUS: dict[str, Status] = {
    "created": "queued",
    "queueing": "queued",
    "processing": "in_progress",
    "success": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
    "canceled": "cancelled",
}
REFUSED = ("AuditSubmitIllegal", "CreationPolicyViolation")  # of what goes in, and of what came out
CREDIT_USD = Decimal("0.005")


def read(reply: Reply) -> Result:
    """A new task is named `task_id`; asked about, it says nothing of its name."""
    task = reply.json
    name, credits = task.get("task_id"), task.get("credits")
    return Result(
        status=STATUS[task["state"]],
        ref={"id": name} if name else {},
        upstream_id=name,
        files=tuple(File(url=one["url"], content_type="video/mp4") for one in task.get("creations") or ()),
        failure_kind="refused" if task.get("err_code") in REFUSED else "broken",
        message=task.get("err_code"),
        cost_usd=str(credits * CREDIT_USD) if isinstance(credits, int) else None,
    )


def error(reply: Reply) -> str | None:
    return str(reply.json["message"])


def kind(reply: Reply) -> FailureKind | None:
    """Whoever has no credits left cannot be served by coming back later."""
    reason = reply.json["reason"]
    return "refused" if reason in REFUSED else "broken" if reason == "CreditInsufficient" else None


def cost(small: str, usual: str, large: str) -> tuple[Price, ...]:
    """Credits for a second at 540p, 720p and 1080p."""
    rows = [str(CREDIT_USD * int(credits)) for credits in (small, large, usual)]
    return usd(rows[0], resolution="540p"), usd(rows[1], resolution="1080p"), usd(rows[2])


usd = price_list("Vidu's price list as others recorded it, 2026-11-15, at half a cent for a credit; not read there")
PROMPT, LONG = passthrough("prompt", required=True, max_length=5000), duration(*range(1, 17), default=5)
TIERS = ("720p", "540p", "1080p")
SHAPE = frame("16:9 9:16 1:1 4:3 3:4", *TIERS)
WORDS = Operation(
    task="video",
    send="POST /text2video",
    poll="GET /tasks/{id}/creations",
    read=read,
    cancel="POST /tasks/{id}/cancel",
    cancel_body=lambda ref: {"id": ref["id"]},
    params=complete_table("video", PROMPT, LONG, SHAPE),
    callback_field="callback_url",
    # Off the peak it is half the price, and perhaps two days later.
    priced_extras=frozenset({"off_peak", "images", "subjects", "videos"}),
)


def pictured(path: str, least: int, most: int, *rows: Param) -> Operation:
    pictures = converted(
        "input_reference", "images", each_image(data_uri), required=True, min_items=least, max_items=most
    )
    return replace(WORDS, send=f"POST /{path}", params=complete_table("video", PROMPT, pictures, *rows))


def q3(name: str, upstream: str, *credits: str) -> Iterator[Model]:
    """A film has the shape of the picture that it begins with."""
    begun, ended = (
        pictured("img2video", 1, 1, LONG, frame("", *TIERS)),
        pictured("start-end2video", 2, 2, LONG, frame("", *TIERS)),
    )
    for op in (WORDS, begun, ended):
        yield Model(id=name, upstream=upstream, op=op, prices=cost(*credits))


PROVIDER = Provider(
    # Its callbacks sign headers and not the body, so that one would have to ask anyway.
    slug="vidu",
    name="Vidu",
    docs="https://platform.vidu.com/docs",
    base_url="https://api.vidu.com/ent/v2",
    key_env="VIDU_API_KEY",
    auth=header("authorization", "Token "),
    error_message=error,
    failure_kind=kind,
    models=(
        *q3("vidu-q3", "viduq3-pro", "9", "20", "24"),
        *q3("vidu-q3-turbo", "viduq3-turbo", "7", "11", "13"),
        Model(
            id="vidu/q3-reference",
            upstream="viduq3",
            prices=cost("7", "12", "15"),
            name="Vidu Q3 Reference",
            op=pictured("reference2video", 1, 7, duration(*range(3, 17), default=5), SHAPE),
        ),
    ),
)
