"""Hailuo videos over version 1 of MiniMax's API, which reports errors with status 200."""

from dataclasses import replace

from penstock.providers.convert import data_uri, first_and_last, first_image
from penstock.providers.minimax.codes import code_kind, price
from penstock.providers.spec import (
    NEVER_SOUND,
    File,
    Model,
    Operation,
    Param,
    Reply,
    Result,
    Status,
    complete_table,
    converted,
    duration,
    frame,
    passthrough,
)

STATUS: dict[str, Status] = {
    "Preparing": "queued",
    "Queueing": "queued",
    "Processing": "in_progress",
    "Success": "completed",
    "Fail": "failed",
}


def read_submission(reply: Reply) -> Result:
    outcome = reply.json["base_resp"]
    if outcome["status_code"] != 0:
        kind = code_kind(outcome["status_code"])
        return Result(status="failed", failure_kind=kind, message=outcome.get("status_msg"))
    return Result(status="queued", ref={"id": reply.json["task_id"]}, upstream_id=reply.json["task_id"])


def read_task(reply: Reply) -> Result:
    """Read the state of a task, or its file, which has a separate URL.

    A reply with neither raises KeyError. It counts as malformed and not as a failure of the task, and is asked again.
    """
    response = reply.json
    if "file" in response:
        return Result(files=(File(url=response["file"]["download_url"], content_type="video/mp4"),))
    outcome = response.get("base_resp") or {}
    status = STATUS[response["status"]]
    file_id = str(response.get("file_id") or "")
    if status == "completed" and not file_id:
        return Result(status="failed", failure_kind="unreadable", message="The video has no file.")
    return Result(
        status=status,
        ref={"file_id": file_id},
        failure_kind=code_kind(outcome.get("status_code")),
        message=outcome.get("status_msg"),
    )


VIDEO = Operation(
    task="video",
    send="POST /v1/video_generation",
    poll="GET /v1/query/video_generation?task_id={id}",
    fetch="GET /v1/files/retrieve?file_id={file_id}",
    read=read_submission,
    read_poll=read_task,
    params=(),
    poll_seconds=10.0,
)
FIRST_IMAGE = converted("input_reference", to="first_frame_image", convert=first_image(data_uri), max_items=1)
TWO_IMAGES = converted(
    "input_reference",
    to=("first_frame_image", "last_frame_image"),
    convert=first_and_last(data_uri),
    max_items=2,
)


def video_model(name: str, upstream: str, image: Param, *, usd: str, usd_10_seconds: str, usd_1080p: str) -> Model:
    """A model that makes 16:9, or the ratio of the input image. MiniMax refuses 1080P for ten seconds."""
    rows = complete_table(
        "video",
        passthrough("prompt", required=True, max_length=2000),
        duration(6, 10, default=6),
        frame("", "768P", "1080P"),
        NEVER_SOUND,
        image,
    )
    prices = (
        price(usd_1080p, "call", resolution="1080P"),
        price(usd_10_seconds, "call", duration=10),
        price(usd, "call"),
    )
    return Model(id=name, upstream=upstream, op=replace(VIDEO, params=rows), prices=prices)


MODELS = (
    video_model("hailuo-2.3", "MiniMax-Hailuo-2.3", FIRST_IMAGE, usd="0.28", usd_10_seconds="0.56", usd_1080p="0.49"),
    video_model(
        "hailuo-2.3-fast",
        "MiniMax-Hailuo-2.3-Fast",
        replace(FIRST_IMAGE, required=True),
        usd="0.19",
        usd_10_seconds="0.32",
        usd_1080p="0.33",
    ),
    video_model("hailuo-02", "MiniMax-Hailuo-02", TWO_IMAGES, usd="0.28", usd_10_seconds="0.56", usd_1080p="0.49"),
)
