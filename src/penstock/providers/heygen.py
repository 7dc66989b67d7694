"""HeyGen: a video in which the person of an image speaks the prompt, with a voice of HeyGen's."""

from penstock.providers.convert import first_image, plain_base64
from penstock.providers.spec import (
    ALWAYS_SOUND,
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
    complete_table,
    converted,
    fixed,
    frame,
    header,
    passthrough,
    renamed,
)
from penstock.values import InputFile

STATUS: dict[str, Status] = {
    "waiting": "queued",
    "pending": "queued",
    "processing": "in_progress",
    "completed": "completed",
    "failed": "failed",
}
# The length of a video follows from its text. The money for the longest one is held; what HeyGen reports is charged.
SCRIPT_CHARACTERS = 900
LONGEST_SECONDS = 90
SOURCE = Source("developers.heygen.com/docs/pricing, Avatar IV from a photo", "2026-11-16")


def read_video(reply: Reply) -> Result:
    """Read a new video, which has its id under another name, or the state of one."""
    video = reply.json["data"]
    video_id = video["video_id"] if "video_id" in video else video["id"]
    url = video.get("video_url")
    return Result(
        status=STATUS[video["status"]],
        ref={"id": video_id},
        upstream_id=video_id,
        files=(File(url=url, content_type="video/mp4"),) if url else (),
        usage={"second": video["duration"]} if video.get("duration") else {},
        failure_kind="refused" if "moderation" in (video.get("failure_code") or "") else "broken",
        message=video.get("failure_message"),
    )


def error_message(reply: Reply) -> str | None:
    error = reply.json["error"]
    return str(error["message"])


def inline_asset(image: InputFile) -> dict[str, object]:
    return {"type": "base64", "media_type": image.content_type, "data": plain_base64(image)}


def longest(seconds: float) -> int:
    """The seconds that a video can have at most, whatever the caller expects."""
    return LONGEST_SECONDS


SPEAKING_IMAGE = Operation(
    task="video",
    send="POST /v3/videos",
    poll="GET /v3/videos/{id}",
    read=read_video,
    model_field=None,
    params=complete_table(
        "video",
        fixed("type", "image"),
        renamed("prompt", to="script", required=True, max_length=SCRIPT_CHARACTERS),
        converted("input_reference", to="image", convert=first_image(inline_asset), required=True, max_items=1),
        passthrough("voice_id"),  # HeyGen refuses a text without a voice
        passthrough("motion_prompt"),
        frame("16:9 9:16 4:5 5:4 1:1", "720p", "1080p", "4k"),
        Param(name="seconds", handling="ignored", convert=longest, default=LONGEST_SECONDS),
        ALWAYS_SOUND,
    ),
    # With these the video would be of another kind or length.
    priced_extras=frozenset({"audio_url", "audio_asset_id", "avatar_id", "engine", "script", "voice_settings"}),
    callback_field="callback_url",
    poll_seconds=10.0,
)
PROVIDER = Provider(
    slug="heygen",
    name="HeyGen",
    docs="https://developers.heygen.com",
    base_url="https://api.heygen.com",
    key_env="HEYGEN_API_KEY",
    auth=header("x-api-key"),
    error_message=error_message,
    models=(
        Model(
            id="heygen/speaking-image",
            upstream="avatar_iv",
            name="HeyGen speaking image",
            op=SPEAKING_IMAGE,
            prices=(
                Price(unit="second", usd="0.0667", when={"sent.resolution": "4k"}, source=SOURCE),
                Price(unit="second", usd="0.05", source=SOURCE),
            ),
        ),
    ),
)
