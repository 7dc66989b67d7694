"""FLUX videos: made of a text or of images, and videos that are extended, edited or upscaled."""

from typing import Any

from penstock.providers.bfl.tasks import price, task_operation
from penstock.providers.convert import each_image, plain_base64
from penstock.providers.spec import (
    COMFY,
    Model,
    Price,
    Source,
    converted,
    duration,
    frame,
    ignored,
    input_video,
    passthrough,
    price_list,
    renamed,
)
from penstock.values import EDIT_VIDEO, EXTEND_VIDEO


def set_video_mode(fields: dict[str, Any]) -> dict[str, Any]:
    """Set the mode: text, image or video to video. What begins with an image or a video has its aspect ratio, and what
    goes on from a video has 1080p at most.
    """
    mode = "v2v" if "start_video" in fields else "i2v" if "keyframes" in fields else "t2v"
    if mode == "t2v":
        return {**fields, "mode": mode}
    if mode == "v2v" and fields["resolution"] != "hd":
        fields = {**fields, "resolution": "fhd"}
    return {name: value for name, value in fields.items() if name != "aspect_ratio"} | {"mode": mode}


MAX_VIDEO_BYTES = 50 * 10**6
VIDEO = task_operation(
    "video",
    duration(*range(5, 21), default=5),
    frame("16:9 9:16 1:1 4:3 3:4 2:1 21:9", "hd", "fhd", "qhd", "uhd"),
    converted("input_reference", to="keyframes", convert=each_image(plain_base64), max_items=2),
    input_video(
        EXTEND_VIDEO,
        to="start_video",
        convert=plain_base64,
        max_seconds=20,
        max_bytes=MAX_VIDEO_BYTES,
        required=False,
    ),
    passthrough("generate_audio", one_of=(True, False)),
    adjust_body=set_video_mode,
    poll_seconds=5.0,
    priced_extras=frozenset({"mode", "draft", "draft_cache", "start_video"}),
)
# The edited video has the length and the shape of the input, up to 720p. No other fields are taken.
EDIT = task_operation(
    "video",
    passthrough("prompt", required=True, max_length=4096),
    *ignored("seconds"),
    input_video(EDIT_VIDEO, to="video", convert=plain_base64, max_seconds=15, max_bytes=MAX_VIDEO_BYTES),
    passthrough("safety_tolerance", low=0, high=4),
    takes_extras=False,
    poll_seconds=5.0,
)
UPSCALE = task_operation(
    "video",
    passthrough("prompt"),
    *ignored("seconds"),
    input_video(EDIT_VIDEO, to="input_video", convert=plain_base64, max_seconds=20, max_bytes=MAX_VIDEO_BYTES),
    renamed("scale_factor", to="upscale_factor", low=1.5, high=3, default=2),
    passthrough("creativity", one_of=(0, 1)),
    poll_seconds=5.0,
)
PRICES = (
    Price(unit="second", usd="0.41", when={"input_video": True, "sent.resolution": "hd"}, source=COMFY),
    Price(unit="second", usd="0.53", when={"input_video": True}, source=COMFY),
    price("0.29", resolution="fhd"),
    price("0.40", resolution="qhd"),
    price("0.80", resolution="uhd"),
    price("0.17"),
)
tool_price = price_list(Source("a copy of docs.bfl.ml/flux_tools", "2026-09-25"))
MODELS = (
    Model(id="flux-3-video", upstream="flux-3-video", op=VIDEO, prices=PRICES),
    Model(id="flux-video-edit", upstream="flux-tools/video-edit-v1", op=EDIT, prices=(tool_price("0.03"),)),
    Model(
        id="flux-video-upscale",
        upstream="flux-tools/video-upscale-v1",
        op=UPSCALE,
        prices=(tool_price("0.07", "megapixel_second", creativity=0), tool_price("0.10", "megapixel_second")),
    ),
)
