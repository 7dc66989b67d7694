"""FLUX videos: from a text, from images that they begin and end with, or going on from a video."""

from typing import Any

from penstock.providers.bfl.tasks import price, task_operation
from penstock.providers.convert import each_image, plain_base64
from penstock.providers.spec import COMFY, Model, Price, converted, duration, frame, input_video, passthrough
from penstock.values import EXTEND_VIDEO


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
        max_bytes=50 * 10**6,
        required=False,
    ),
    passthrough("generate_audio", one_of=(True, False)),
    adjust_body=set_video_mode,
    poll_seconds=5.0,
    priced_extras=frozenset({"mode", "draft", "draft_cache", "start_video"}),
)
PRICES = (
    Price(unit="second", usd="0.41", when={"input_video": True, "sent.resolution": "hd"}, source=COMFY),
    Price(unit="second", usd="0.53", when={"input_video": True}, source=COMFY),
    price("0.29", resolution="fhd"),
    price("0.40", resolution="qhd"),
    price("0.80", resolution="uhd"),
    price("0.17"),
)
MODELS = (Model(id="flux-3-video", upstream="flux-3-video", op=VIDEO, prices=PRICES),)
