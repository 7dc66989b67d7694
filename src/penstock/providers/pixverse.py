"""PixVerse: V6 videos from text, from an image, or between two; images are uploaded first."""

import re
from collections.abc import Callable
from dataclasses import replace

from penstock.providers.openai_compatible import form_file
from penstock.providers.spec import (
    COMFY,
    FailureKind,
    File,
    ImageUpload,
    Model,
    Operation,
    Param,
    Price,
    Provider,
    Reply,
    Result,
    Status,
    Upload,
    complete_table,
    converted,
    duration,
    frame,
    header,
    passthrough,
    price_list,
)
from penstock.values import InputFile

STATUS: dict[int, Status] = {1: "completed", 5: "in_progress", 6: "failed", 7: "failed", 8: "failed"}
MODERATED = 7
# Errors have the status 200 and codes that are not all documented; the message decides.
REFUSAL = re.compile(r"moderat|sensitive|nsfw|violat|prohibit", re.IGNORECASE)
BUSY = re.compile(r"concurren|rate limit|too many", re.IGNORECASE)


def read_video(reply: Reply) -> Result:
    """Read a new video, the state of one, or an error."""
    response = reply.json
    if response["ErrCode"] != 0:
        return Result(status="failed", failure_kind=error_kind(response["ErrMsg"]), message=response["ErrMsg"])
    video = response["Resp"]
    if "status" not in video:
        return Result(status="queued", ref={"id": str(video["video_id"])}, upstream_id=str(video["video_id"]))
    url = video.get("url")
    return Result(
        status=STATUS[video["status"]],
        ref={"id": str(video["id"])},
        upstream_id=str(video["id"]),
        files=(File(url=url, content_type="video/mp4"),) if url else (),
        failure_kind="refused" if video["status"] == MODERATED else "broken",
        message="PixVerse refused the content." if video["status"] == MODERATED else "PixVerse could not make it.",
    )


def error_kind(message: str) -> FailureKind:
    return "refused" if REFUSAL.search(message) else "busy" if BUSY.search(message) else "broken"


def error_message(reply: Reply) -> str | None:
    return str(reply.json["ErrMsg"])


def upload_form(image: InputFile) -> tuple[tuple[str, Upload], ...]:
    return (("image", form_file(image)),)


def read_upload(reply: Reply) -> str:
    return str(int(reply.json["Resp"]["img_id"]))


def image_id(number: int) -> Callable[[list[InputFile]], int]:
    """The id of an uploaded image."""
    return lambda images: int(images[number].uploaded_name)


def both_ids(images: list[InputFile]) -> tuple[int, int]:
    return image_id(0)(images), image_id(1)(images)


QUALITIES = ("720p", "360p", "540p", "1080p")
PROMPT = passthrough("prompt", required=True, max_length=5000)
SECONDS = duration(*range(1, 16), default=5)
SOUND = converted("generate_audio", to="generate_audio_switch", convert=bool, one_of=(True, False))
SEED = passthrough("seed", low=0, high=2**31 - 1)
OF_IMAGES = (PROMPT, SEED, SECONDS, SOUND, frame("", *QUALITIES, to=("quality",)))
VIDEO = Operation(
    task="video",
    send="POST /openapi/v2/video/text/generate",
    poll="GET /openapi/v2/video/result/{id}",
    read=read_video,
    params=complete_table(
        "video",
        PROMPT,
        passthrough("negative_prompt", max_length=2048),
        SEED,
        SECONDS,
        SOUND,
        frame("16:9 4:3 1:1 3:4 9:16 2:3 3:2 21:9", *QUALITIES, to=("aspect_ratio", "quality")),
    ),
    priced_extras=frozenset({"motion_mode", "template_id", "generate_multi_clip_switch"}),
)


def of_images(path: str, row: Param) -> Operation:
    return replace(
        VIDEO,
        send=f"POST /openapi/v2/video/{path}/generate",
        image_upload=ImageUpload(send="POST /openapi/v2/image/upload", form=upload_form, read=read_upload),
        params=complete_table("video", *OF_IMAGES, row),
    )


ONE_IMAGE = converted("input_reference", to="img_id", convert=image_id(0), required=True, max_items=1)
TWO_IMAGES = converted(
    "input_reference",
    to=("first_frame_img", "last_frame_img"),
    convert=both_ids,
    required=True,
    min_items=2,
    max_items=2,
)
price = price_list(COMFY)
PRICES: dict[str, tuple[str, str]] = {  # a second without sound, and with it
    "360p": ("0.05", "0.07"),
    "540p": ("0.07", "0.09"),
    "1080p": ("0.18", "0.23"),
}


def by_quality(quality: str, silent: str, loud: str) -> list[Price]:
    return [price(loud, quality=quality, generate_audio_switch=True), price(silent, quality=quality)]


PROVIDER = Provider(
    slug="pixverse",
    name="PixVerse",
    docs="https://docs.platform.pixverse.ai",
    base_url="https://app-api.pixverse.ai",
    key_env="PIXVERSE_API_KEY",
    auth=header("api-key"),
    id_header="ai-trace-id",
    error_message=error_message,
    models=tuple(
        Model(
            id="pixverse-v6",
            upstream="v6",
            name="PixVerse V6",
            op=op,
            prices=(
                *(row for quality, usd in PRICES.items() for row in by_quality(quality, *usd)),
                price("0.12", generate_audio_switch=True),
                price("0.09"),
            ),
        )
        for op in (VIDEO, of_images("img", ONE_IMAGE), of_images("transition", TWO_IMAGES))
    ),
)
