"""Films on fal, each from two endpoints: one takes words and a shape, the other moves the caller's picture."""

from typing import Any

from penstock.providers.convert import data_uri, first_and_last, first_image, number_text, with_unit
from penstock.providers.fal.queue import PROMPT, hearsay, listed, model, usd
from penstock.providers.spec import Model, Param, Price, converted, duration, passthrough, renamed, frame

NOT, SOUND = passthrough("negative_prompt"), passthrough("generate_audio", one_of=(True, False))
Shapes = tuple[Param, Param]  # of films made of words, and of pictures, which have a shape already


def films(
    name: str, text: str, frames: Shapes, rows: tuple[Param, ...], image: Param, *prices: Price, **more: Any
) -> tuple[Model, Model]:
    moving = text.removesuffix("/text-to-video") + "/image-to-video"
    return (
        model(name, text, "video", (PROMPT, frames[0], *rows), prices, **more),
        model(name, moving, "video", (PROMPT, frames[1], image, *rows), prices, **more),
    )


def shapes(ratios: str, *tiers: str) -> Shapes:
    return frame(ratios, *tiers), frame("", *tiers)


def begins(to: str) -> Param:
    return converted("input_reference", to, first_image(data_uri), required=True, max_items=1)


def begins_and_ends(*to: str) -> Param:
    return converted("input_reference", to, first_and_last(data_uri), required=True, max_items=2)


def silent(fields: dict[str, Any]) -> dict[str, Any]:
    """Unless asked for, as on Kling's own service: sound costs half as much again, or more."""
    return {"generate_audio": False, **fields}


def words(*seconds: float, default: float) -> Param:
    """Most take the seconds as text."""
    return duration(*seconds, convert=number_text, default=default)


KLING = shapes("16:9 9:16 1:1")
VEO = (
    shapes("16:9 9:16", "720p", "1080p", "4k"),
    (duration(4, 6, 8, convert=with_unit("s"), default=8), NOT, SOUND),
    begins("image_url"),
)
WAN = shapes("16:9 9:16 1:1 4:3 3:4", "720p", "1080p")
SEEDANCE = shapes("16:9 9:16 1:1 4:3 3:4 21:9", "720p", "480p", "1080p", "4k")
VIDU = shapes("16:9 9:16 1:1 4:3 3:4", "720p", "540p", "1080p")
GROK = shapes("16:9 9:16 1:1 4:3 3:4 3:2 2:3", "720p", "480p")
START_AND_END = begins_and_ends("start_image_url", "end_image_url")
IMAGE_AND_END = begins_and_ends("image_url", "end_image_url")

MODELS = (
    *films(
        "kling-2.5-turbo",
        "fal-ai/kling-video/v2.5-turbo/pro/text-to-video",
        KLING,
        (words(5, 10, default=5), NOT),
        begins_and_ends("image_url", "tail_image_url"),
        usd("0.07"),
    ),
    *films(
        "kling-2.6",
        "fal-ai/kling-video/v2.6/pro/text-to-video",
        KLING,
        (words(5, 10, default=5), NOT, SOUND),
        START_AND_END,
        usd("0.14", generate_audio=True),
        usd("0.07"),
        adjust_body=silent,
    ),
    *films(
        "kling-3",
        "fal-ai/kling-video/v3/standard/text-to-video",
        KLING,
        (words(*range(3, 16), default=5), NOT, SOUND),
        START_AND_END,
        hearsay("0.126", generate_audio=True),
        hearsay("0.084"),
        adjust_body=silent,
    ),
    *films(
        "kling-3-pro",
        "fal-ai/kling-video/v3/pro/text-to-video",
        KLING,
        (words(*range(3, 16), default=5), NOT, SOUND),
        START_AND_END,
        hearsay("0.168", generate_audio=True),
        hearsay("0.112"),
        adjust_body=silent,
    ),
    *films(
        "kling-4",
        "kling/v4/text-to-video",
        shapes("16:9 9:16 1:1 21:9", "720p", "1080p"),
        (duration(*range(3, 31), default=5),),
        START_AND_END,
        usd("0.235", resolution="1080p"),
        usd("0.157"),
    ),
    *films(
        "veo-3.1",
        "fal-ai/veo3.1",
        *VEO,
        usd("0.40", generate_audio=False, resolution="4k"),
        usd("0.20", generate_audio=False),
        usd("0.60", resolution="4k"),
        usd("0.40"),
    ),
    *films(
        "veo-3.1-fast",
        "fal-ai/veo3.1/fast",
        *VEO,
        usd("0.30", generate_audio=False, resolution="4k"),
        usd("0.10", generate_audio=False),
        usd("0.35", resolution="4k"),
        usd("0.15"),
    ),
    *films(
        "wan-2.6",
        "wan/v2.6/text-to-video",
        WAN,
        (words(5, 10, 15, default=5), NOT),
        begins("image_url"),
        usd("0.15", resolution="1080p"),
        usd("0.10"),
    ),
    *films(
        "wan-2.7",
        "fal-ai/wan/v2.7/text-to-video",
        WAN,
        (duration(*range(2, 16), default=5), NOT),
        IMAGE_AND_END,
        usd("0.10"),
    ),
    *films(
        "seedance-2",
        "bytedance/seedance-2.0/text-to-video",
        SEEDANCE,
        (words(*range(4, 16), default=5), renamed("user", "end_user_id")),
        IMAGE_AND_END,
        listed("0.1346", resolution="480p"),
        listed("0.682", resolution="1080p"),
        listed("1.5552", resolution="4k"),
        listed("0.3034"),
    ),
    *films(
        "hailuo-2.3",
        "fal-ai/minimax/hailuo-2.3/standard/text-to-video",
        (frame(), frame()),
        (words(6, 10, default=6),),
        begins("image_url"),
        hearsay("0.56", "call", duration="10"),
        hearsay("0.28", "call"),
    ),
    *films(
        "vidu-q3",
        "fal-ai/vidu/q3/text-to-video",
        VIDU,
        (duration(*range(1, 17), default=5),),
        IMAGE_AND_END,
        usd("0.07", resolution="540p"),
        usd("0.154"),
    ),
    *films(
        "grok-imagine-video",
        "xai/grok-imagine-video/text-to-video",
        GROK,
        (duration(*range(1, 16), default=6),),
        begins("image_url"),
        usd("0.05", input_usd="0.002", resolution="480p"),
        usd("0.07", input_usd="0.002"),
    ),
)
