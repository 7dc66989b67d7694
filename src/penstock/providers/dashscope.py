"""DashScope: Alibaba's Wan films, whose newer models take pictures as a list and older ones by a field for each."""

from dataclasses import replace
from typing import Any

from penstock.providers.convert import data_uri, first_image, closest_label
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
    price_list,
    renamed,
    frame,
    complete_table,
)
from penstock.values import InputImage

# A task that it no longer finds is UNKNOWN, and was perhaps made: no verdict, so it is asked about until time is up.
STATUS: dict[str, Status] = {
    "PENDING": "queued",
    "SUSPENDED": "queued",
    "RUNNING": "in_progress",
    "SUCCEEDED": "completed",
    "FAILED": "failed",
    "CANCELED": "cancelled",
}


def read(reply: Reply) -> Result:
    """A refusal may come with status 200, and then has no task."""
    answer = reply.json
    if "output" not in answer and answer.get("code"):
        return Result(status="failed", failure_kind=blame(answer["code"]) or "broken", message=answer.get("message"))
    return read_later(reply)


def read_later(reply: Reply) -> Result:
    """An answer without a task is none to the question, which is asked again."""
    task, used = reply.json["output"], reply.json.get("usage") or {}
    url, seconds = task.get("video_url"), used.get("duration")
    return Result(
        status=STATUS[task["task_status"]],
        ref={"id": task["task_id"]},
        upstream_id=task["task_id"],
        files=(File(url, None, "video/mp4", task.get("actual_prompt")),) if url else (),
        failure_kind=blame(task.get("code") or "") or "broken",
        message=task.get("message"),
        usage={} if seconds is None else {"second": seconds},
    )


def blame(code: str) -> FailureKind | None:
    if "DataInspection" in code or code == "IPInfringementSuspect":
        return "refused"
    is_down = code.startswith(("Arrearage", "AccessDenied", "InternalError"))
    return "busy" if code.startswith("Throttling") else "broken" if is_down else None


def error(reply: Reply) -> str | None:
    return str(reply.json["message"])


def kind(reply: Reply) -> FailureKind | None:
    return blame(reply.json["code"])


def parted(fields: dict[str, Any]) -> dict[str, Any]:
    """What no row speaks of is a parameter."""
    words, told = fields.pop("input"), fields.pop("parameters")
    return {"input": words, "parameters": {**fields, **told}}


def media(found: list[InputImage]) -> list[dict[str, str]]:
    """One or two pictures begin and end the film; more are things to be seen in it."""
    roles = ("first_frame", "last_frame") if len(found) <= 2 else ("reference_image",) * len(found)
    return [{"type": role, "url": data_uri(one)} for one, role in zip(found, roles, strict=False)]


usd = price_list("Alibaba's price list for Singapore as others recorded it, 2026-11-15; not read there")
SMALL = ("1280x720", "720x1280", "960x960", "1088x832", "832x1088")
LARGE = ("1920x1080", "1080x1920", "1440x1440", "1632x1248", "1248x1632")
STARRED = {size: size.replace("x", "*") for size in SMALL + LARGE}
NOT = renamed("negative_prompt", "input.negative_prompt", max_length=500)
RATIOS, PATH = "16:9 9:16 1:1 4:3 3:4", "/api/v1/services/aigc/video-generation/video-synthesis"
FILM = Operation(
    task="video",
    send=f"POST {PATH}",
    poll="GET /api/v1/tasks/{id}",
    cancel="POST /api/v1/tasks/{id}/cancel",
    read=read,
    read_poll=read_later,
    adjust_body=parted,
    params=(),
    poll_seconds=15.0,
)


def lasts(*seconds: int) -> Param:
    return duration(*seconds, to="parameters.duration", default=5)


def sized(ratios: str, *tiers: str) -> Param:
    return frame(ratios, *tiers, to=("parameters.ratio", "parameters.resolution"))


def pictures(most: int, *, required: bool = True) -> Param:
    return converted("input_reference", "input.media", media, required=required, max_items=most)


def cost(usual: str, **tiers: str) -> tuple[Price, ...]:
    return (*(usd(one, **{"parameters.resolution": f"{name[1:]}P"}) for name, one in tiers.items()), usd(usual))


def wan(name: str, upstream: str, longest: int, prices: tuple[Price, ...], *rows: Param) -> Model:
    words = renamed("prompt", "input.prompt", required=True, max_length=longest)
    return Model(
        id=name, upstream=upstream, op=replace(FILM, params=complete_table("video", words, *rows)), prices=prices
    )


OLD, NEW, THREE = (lasts(5, 10, 15), NOT), (lasts(*range(2, 16)), NOT), lasts(*range(2, 31))
SIZE = converted("frame", "parameters.size", closest_label(STARRED), default="16:9")
BY_SIZE = (*(usd("0.15", **{"parameters.size": STARRED[one]}) for one in LARGE), usd("0.10"))
IMAGE = converted("input_reference", "input.img_url", first_image(data_uri), required=True, max_items=1)
ALL = (sized(RATIOS, "720P", "480P", "1080P"), THREE, pictures(10, required=False))
CHEAP = cost("0.10", _1080="0.15")
PROVIDER = Provider(
    # A key is good for one region; those of others have their address in `[providers.dashscope]`.
    slug="dashscope",
    name="DashScope",
    docs="https://www.alibabacloud.com/help/en/model-studio",
    auth=bearer,
    base_url="https://dashscope-intl.aliyuncs.com",
    key_env="DASHSCOPE_API_KEY",
    error_message=error,
    failure_kind=kind,
    headers={"x-dashscope-async": "enable"},
    models=(
        wan("wan-2.6", "wan2.6-t2v", 1500, BY_SIZE, SIZE, *OLD),
        wan("wan-2.6", "wan2.6-i2v", 1500, CHEAP, sized("", "720P", "1080P"), IMAGE, *NEW),
        wan("wan-2.7", "wan2.7-t2v", 5000, CHEAP, sized(RATIOS, "720P", "1080P"), *NEW),
        wan("wan-2.7", "wan2.7-i2v", 5000, CHEAP, sized("", "720P", "1080P"), pictures(2), *NEW),
        wan("wan-3", "wan3.0-video", 5000, cost("0.10", _480="0.05", _1080="0.20"), *ALL),
        wan("wan-3-prime", "wan3.0-video-prime", 5000, cost("0.14", _480="0.068", _1080="0.28"), *ALL),
    ),
)
