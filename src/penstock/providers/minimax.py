"""MiniMax: Hailuo's films over its first API, which tells errors under status 200, and H3's over its second."""

from dataclasses import replace
from typing import Any

from penstock.providers.convert import data_uri, first_and_last, first_image
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
    duration,
    passthrough,
    price_list,
    frame,
    complete_table,
)
from penstock.values import InputImage

STATUS: dict[str, Status] = {
    "Preparing": "queued",
    "Queueing": "queued",
    "Processing": "in_progress",
    "Success": "completed",
    "Fail": "failed",
    "queued": "queued",
    "running": "in_progress",
    "succeeded": "completed",
    "failed": "failed",
    "expired": "failed",
    "cancelled": "cancelled",
}
CODES: dict[str, FailureKind] = {
    "1002": "busy",
    "1026": "refused",
    "1027": "refused",
    "2013": "rejected",
    "2056": "busy",
}
TYPES: dict[str, FailureKind] = {
    "unprocessable_entity_error": "refused",
    "insufficient_balance_error": "broken",
    "authorized_error": "broken",
    "rate_limit_error": "busy",
    "server_error": "broken",
}


def read(reply: Reply) -> Result:
    told = reply.json["base_resp"]
    if told["status_code"] != 0:
        return Result(status="failed", failure_kind=blame(told["status_code"]), message=told.get("status_msg"))
    return Result(status="queued", ref={"id": reply.json["task_id"]}, upstream_id=reply.json["task_id"])


def read_later(reply: Reply) -> Result:
    """A finished task names a file, whose address is asked for apart. Trouble with either question is no verdict on the
    film: an answer without what was asked for cannot be read, and the question is asked again.
    """
    answer = reply.json
    if "file" in answer:
        return Result(files=(File(url=answer["file"]["download_url"], content_type="video/mp4"),))
    told, status, file_id = answer.get("base_resp") or {}, STATUS[answer["status"]], str(answer.get("file_id") or "")
    if status == "completed" and not file_id:
        return Result(status="failed", failure_kind="unreadable", message="The film has no file.")
    code, words = told.get("status_code"), told.get("status_msg")
    return Result(status=status, ref={"file_id": file_id}, failure_kind=blame(code), message=words)


def read_2(reply: Reply) -> Result:
    """An address works for a while; whoever asks again gets a fresh one."""
    task = reply.json.get("task") or {"id": reply.json["task_id"], "status": "queued"}
    problem = task.get("error") or {}
    url = (task.get("content") or {}).get("url")
    return Result(
        status=STATUS[task["status"]],
        ref={"id": task["id"]},
        upstream_id=task["id"],
        files=(File(url=url, content_type="video/mp4"),) if url else (),
        failure_kind=blame(problem.get("code")),
        message=problem.get("message"),
    )


def blame(code: int | str | None) -> FailureKind:
    return CODES.get(str(code), "broken")


def error(reply: Reply) -> str | None:
    return str(reply.json["error"]["message"])


def kind(reply: Reply) -> FailureKind | None:
    return TYPES.get(reply.json["error"]["type"])


def seen(found: list[InputImage]) -> list[dict[str, Any]]:
    """One or two pictures begin and end the film; more are things to be seen in it."""
    roles = ("first_frame", "last_frame") if len(found) <= 2 else ("reference_image",) * len(found)
    pairs = zip(found, roles, strict=False)
    return [{"type": "image_url", "image_url": {"url": data_uri(one)}, "role": role} for one, role in pairs]


def scene(fields: dict[str, Any]) -> dict[str, Any]:
    words = {"type": "text", "text": fields.pop("prompt")}
    return {**fields, "content": [words, *fields.pop("content", ())]}


usd = price_list("MiniMax's price list as others recorded it, 2026-11-15; not read there")
PROMPT, SIX = passthrough("prompt", required=True, max_length=2000), duration(6, 10, default=6)
HAILUO = Operation(
    task="video",
    send="POST /v1/video_generation",
    poll="GET /v1/query/video_generation?task_id={id}",
    fetch="GET /v1/files/retrieve?file_id={file_id}",
    read=read,
    read_poll=read_later,
    params=(),
    poll_seconds=10.0,
)
FIRST = converted("input_reference", "first_frame_image", first_image(data_uri), max_items=1)
BOTH = converted("input_reference", ("first_frame_image", "last_frame_image"), first_and_last(data_uri), max_items=2)


def hailuo(name: str, upstream: str, picture: Param, *usd_each: str) -> Model:
    """Films from words are 16:9, others as their picture is; 1080P is for six seconds, and refused for ten."""
    large, long, usual = usd_each
    prices = (usd(large, "call", resolution="1080P"), usd(long, "call", duration=10), usd(usual, "call"))
    rows = complete_table("video", PROMPT, SIX, frame("", "768P", "1080P"), picture)
    return Model(id=name, upstream=upstream, op=replace(HAILUO, params=rows), prices=prices)


def h3(name: str, upstream: str, tiers: tuple[str, str], most: int, *prices: Price) -> Model:
    """Pictures beyond so many would cost extra."""
    shape = frame("16:9 9:16 1:1 4:3 3:4 21:9", *tiers, to=("ratio", "resolution"))
    op = Operation(
        task="video",
        send="POST /v2/video_generation",
        poll="GET /v2/query/video_generation/{id}",
        cancel="DELETE /v2/video_generation/{id}",
        read=read_2,
        adjust_body=scene,
        poll_seconds=10.0,
        priced_extras=frozenset({"content"}),
        params=complete_table(
            "video",
            passthrough("prompt", required=True, max_length=7000),
            shape,
            duration(*range(5, 16), default=5),
            converted("input_reference", "content", seen, max_items=most),
        ),
    )
    return Model(id=name, upstream=upstream, op=op, prices=prices)


PROVIDER = Provider(
    slug="minimax",
    name="MiniMax",
    docs="https://platform.minimax.io/docs",
    base_url="https://api.minimax.io",
    key_env="MINIMAX_API_KEY",
    auth=bearer,
    error_message=error,
    failure_kind=kind,
    models=(
        h3("minimax/h3", "MiniMax-H3", ("768P", "2K"), 5, usd("0.13", resolution="2K"), usd("0.08")),
        h3("minimax/h3-max", "MiniMax-H3-Max", ("768P", "480P"), 2, usd("0.05", resolution="480P"), usd("0.08")),
        hailuo("hailuo-2.3", "MiniMax-Hailuo-2.3", FIRST, "0.49", "0.56", "0.28"),
        hailuo("hailuo-2.3-fast", "MiniMax-Hailuo-2.3-Fast", replace(FIRST, required=True), "0.33", "0.32", "0.19"),
        hailuo("hailuo-02", "MiniMax-Hailuo-02", BOTH, "0.49", "0.56", "0.28"),
    ),
)
