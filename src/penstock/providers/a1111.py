"""AUTOMATIC1111's web UI, and SD.Next and Forge, which speak its language: whatever your server has loaded."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.providers.convert import first_image, pixels, plain_base64
from penstock.providers.spec import (
    File,
    Model,
    Operation,
    Param,
    Price,
    Provider,
    Reply,
    Result,
    Task,
    converted,
    emulated,
    fixed,
    passthrough,
    refused,
    renamed,
    complete_table,
)
from penstock.values import Frame, InputImage


def read(reply: Reply) -> Result:
    """Enlarging gives one picture alone. There is no grid among them where nothing is saved."""
    answer = reply.json
    made = answer["images"] if "images" in answer else [answer["image"]]
    return Result(files=tuple(File(data=one) for one in made if one))


def error(reply: Reply) -> str | None:
    """Of an exception: its words, or its kind; what is malformed is told as FastAPI does."""
    told = reply.json
    detail = told.get("detail") or told.get("errors") or told["error"]
    return detail if isinstance(detail, str) else detail[0]["msg"]


def basic(key: str) -> Mapping[str, str]:
    """For servers started with --api-auth, whose `key_env` then holds `user:password`."""
    return {"authorization": f"Basic {b64encode(key.encode()).decode()}"} if key else {}


def begun(found: Sequence[InputImage]) -> tuple[list[str], int, int]:
    """Its own default is 512 x 512, whatever goes in."""
    return [plain_base64(found[0])], *FIT(Frame(found[0].width, found[0].height))


def does(task: Task, *rows: Param, **more: Any) -> Operation:
    """What would reach into the server, its files or other people's jobs is not for callers."""
    return Operation(
        task=task,
        send="POST /sdapi/v1/{model}",
        read=read,
        safe_to_resubmit=True,
        **more,
        params=complete_table(
            task,
            *rows,
            *refused(
                "override_settings",
                "override_settings_restore_afterwards",
                "script_name",
                "script_args",
                "alwayson_scripts",
                "save_images",
                "send_images",
                "do_not_save_samples",
                "force_task_id",
                "infotext",
                "include_init_images",
                "sd_model_checkpoint",
                "refiner_checkpoint",
            ),
        ),
    )


FIT = pixels(multiple=8, min_side=64, max_side=2048)
DRAW = (
    passthrough("prompt", required=True),
    passthrough("negative_prompt"),
    emulated("n", "n_iter", high=4),
    passthrough("steps", low=1, high=150),
    fixed("save_images", False),
)
SIZE = converted("frame", ("width", "height"), FIT)
EDIT = (
    converted("images", ("init_images", "width", "height"), begun, required=True, max_items=1),
    *DRAW,
    converted("mask", "mask", plain_base64),
    fixed("inpainting_fill", 1),  # begin with what was there
    passthrough("denoising_strength", low=0, high=1),
)
ENLARGE = (
    converted("images", "image", first_image(plain_base64), required=True, max_items=1),
    fixed("resize_mode", 0),
    renamed("scale_factor", "upscaling_resize", low=1, high=8, default=2),
    passthrough("upscaler_1"),
)
FREE = (Price(unit="image", usd="0", note="your own hardware"),)
PROVIDER = Provider(
    slug="a1111",
    name="AUTOMATIC1111",
    docs="https://github.com/AUTOMATIC1111/stable-diffusion-webui/wiki/API",
    base_url="http://127.0.0.1:7860",
    base_url_env="A1111_URL",
    auth=basic,
    error_message=error,
    models=(
        Model(id="a1111/loaded", upstream="txt2img", op=does("image", *DRAW, SIZE), prices=FREE),
        Model(id="a1111/loaded", upstream="img2img", op=does("edit", *EDIT, settings={"mask": "white"}), prices=FREE),
        Model(
            id="a1111/upscale",
            upstream="extra-single-image",
            prices=FREE,
            op=does(
                "upscale",
                *ENLARGE,
                adjust_body=lambda fields: {"upscaler_1": "R-ESRGAN 4x+", "upscaling_resize": 2, **fields},
            ),
        ),
    ),
)
