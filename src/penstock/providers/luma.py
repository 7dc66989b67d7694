"""Luma: Ray videos, edits of videos and Uni images, over its Agents API (not Dream Machine, which has other keys)."""

from typing import Any

from penstock.providers.convert import both, closest, each_image, plain_base64, with_unit
from penstock.providers.spec import (
    COMFY,
    NEVER_SOUND,
    FailureKind,
    File,
    Model,
    Operation,
    Param,
    Price,
    Provider,
    Reply,
    Result,
    Source,
    Status,
    bearer,
    complete_table,
    converted,
    duration,
    fixed,
    frame,
    ignored,
    input_video,
    passthrough,
    price_list,
    renamed,
)
from penstock.values import EDIT_VIDEO, Frame, InputFile

STATUS: dict[str, Status] = {
    "queued": "queued",
    "processing": "in_progress",
    "completed": "completed",
    "failed": "failed",
}
FAILURE_KINDS: dict[str, FailureKind] = {
    "content_moderated": "refused",
    "image_too_large": "rejected",
    "unsupported_format": "rejected",
    "corrupt_input": "rejected",
    "invalid_request": "rejected",
    "rate_limited": "busy",
}
VIDEO_RATIOS = "16:9 9:16 1:1 4:3 3:4 21:9"


def read_job(reply: Reply) -> Result:
    """Read a job. Its output URLs work for an hour; each poll returns new ones."""
    job = reply.json
    return Result(
        status=STATUS[job["state"]],
        ref={"id": job["id"]},
        upstream_id=job["id"],
        files=tuple(File(url=output["url"]) for output in job.get("output") or ()),
        failure_kind=FAILURE_KINDS.get(job.get("failure_code") or "", "broken"),
        message=job.get("failure_reason"),
    )


def error_message(reply: Reply) -> str | None:
    """The message of an error response: not documented, so two usual forms are tried."""
    error = reply.json.get("detail") or reply.json["error"]
    return error if isinstance(error, str) else error.get("message")


def media_object(file: InputFile) -> dict[str, object]:
    return {"data": plain_base64(file), "media_type": file.content_type}


def image_ratio(images: list[InputFile]) -> str:
    """The aspect ratio of a video that begins with an image: that of the image."""
    return closest(*VIDEO_RATIOS.split())(Frame(images[0].width, images[0].height))


def place_keyframes(fields: dict[str, Any]) -> dict[str, Any]:
    """Put the first image at the first frame and the second at the last, at 24 frames per second."""
    video = fields["video"]
    if "keyframes" in video:
        last = 24 * int(video.get("duration", "5s").rstrip("s"))
        video["keyframe_indexes"] = [0, last][: len(video["keyframes"])]
    return fields


def split_images(fields: dict[str, Any]) -> dict[str, Any]:
    """Send the first image as the one to edit, the others as references."""
    source, *references = fields.pop("images")
    return {**fields, "source": source, **({"image_ref": references} if references else {})}


PROMPT = passthrough("prompt", required=True, max_length=6000)
USER = renamed("user", "user_id")
# Other outputs, inputs that the price depends on, and searches.
PRICED = frozenset({"video", "source", "layering", "web_search"})
JOB: dict[str, Any] = {"send": "POST /generations", "poll": "GET /generations/{id}", "read": read_job}
VIDEO = Operation(
    task="video",
    **JOB,
    priced_extras=PRICED,
    adjust_body=place_keyframes,
    params=complete_table(
        "video",
        PROMPT,
        USER,
        fixed("type", "video"),
        duration(5, 10, to="video.duration", convert=with_unit("s"), default=5),
        frame(VIDEO_RATIOS, "720p", "540p", "1080p", to=("aspect_ratio", "video.resolution")),
        converted(
            "input_reference",
            to=("video.keyframes", "aspect_ratio"),
            convert=both(each_image(media_object), image_ratio),
            max_items=2,
        ),
        NEVER_SOUND,
    ),
)
RESOLUTIONS = ("720p", "360p", "540p", "1080p")


def change_video(kind: str, max_seconds: int, *rows: Param) -> Operation:
    """A video is changed, and stays as long as it is."""
    source = input_video(EDIT_VIDEO, to="source", convert=media_object, max_seconds=max_seconds)
    rows = (PROMPT, USER, fixed("type", kind), *ignored("seconds"), source, NEVER_SOUND, *rows)
    return Operation(task="video", **JOB, params=complete_table("video", *rows), priced_extras=PRICED)


EDIT_ROWS = (frame("", *RESOLUTIONS, to=("video.resolution",)), fixed("video.edit.auto_controls", True))
VIDEO_EDIT = change_video("video_edit", 18, *EDIT_ROWS)
REFRAME = change_video("video_reframe", 30, frame(VIDEO_RATIOS, *RESOLUTIONS, to=("aspect_ratio", "video.resolution")))
IMAGE_JOB: dict[str, Any] = {**JOB, "poll_seconds": 2.0, "priced_extras": PRICED}
IMAGE_ROWS = (PROMPT, USER, frame("1:1 16:9 9:16 3:2 2:3 2:1 1:2 3:1 1:3"), fixed("output_format", "png"))
IMAGE = Operation(task="image", **IMAGE_JOB, params=complete_table("image", fixed("type", "image"), *IMAGE_ROWS))
EDIT = Operation(
    task="edit",
    **IMAGE_JOB,
    adjust_body=split_images,
    params=complete_table(
        "edit",
        fixed("type", "image_edit"),
        *IMAGE_ROWS,
        converted("images", to="images", convert=each_image(media_object), required=True, max_items=9),
    ),
)

video_price = price_list(Source("Luma's price list, as others recorded it", "2026-11-15", is_second_hand=True))
image_price = price_list(Source("a copy of docs.agents.lumalabs.ai/guides/pricing", "2026-11-15"))
comfy_price = price_list(COMFY)
UNI_1 = (image_price("0.0404", "image", input_usd="0.003"),)
UNI_1_MAX = (comfy_price("0.10", "image", input_usd="0.003"),)
IN_540P = {"video.resolution": "540p"}
IN_1080P = {"video.resolution": "1080p"}
TEN_SECONDS = {"video.duration": "10s"}


def prices_by_second(usd_360p: str, usd_540p: str, usd: str, usd_1080p: str) -> tuple[Price, ...]:
    others = {"360p": usd_360p, "540p": usd_540p, "1080p": usd_1080p}
    return (*(comfy_price(other, **{"video.resolution": name}) for name, other in others.items()), comfy_price(usd))


RAY_EDIT = prices_by_second("0.108", "0.144", "0.216", "0.432")
RAY_REFRAME = prices_by_second("0.03", "0.06", "0.12", "0.36")
PROVIDER = Provider(
    slug="luma",
    name="Luma",
    docs="https://docs.agents.lumalabs.ai",
    base_url="https://agents.lumalabs.ai/v1",
    key_env="LUMA_AGENTS_API_KEY",
    auth=bearer,
    error_message=error_message,
    models=(
        Model(
            id="luma-ray-3",
            upstream="ray-3.2",
            name="Luma Ray 3.2",
            op=VIDEO,
            prices=(
                video_price("3.60", "call", **IN_1080P, **TEN_SECONDS),
                video_price("1.20", "call", **IN_1080P),
                video_price("0.45", "call", **IN_540P, **TEN_SECONDS),
                video_price("0.15", "call", **IN_540P),
                video_price("0.90", "call", **TEN_SECONDS),
                video_price("0.30", "call"),
            ),
        ),
        Model(id="luma/ray-3-edit", upstream="ray-3.2", name="Luma Ray 3.2 Edit", op=VIDEO_EDIT, prices=RAY_EDIT),
        Model(id="luma/ray-3-reframe", upstream="ray-3.2", name="Luma Reframe", op=REFRAME, prices=RAY_REFRAME),
        *(Model(id="luma/uni-1", upstream="uni-1", name="Luma Uni-1", op=op, prices=UNI_1) for op in (IMAGE, EDIT)),
        *(
            Model(id="luma/uni-1-max", upstream="uni-1-max", name="Luma Uni-1 Max", op=op, prices=UNI_1_MAX)
            for op in (IMAGE, EDIT)
        ),
    ),
)
