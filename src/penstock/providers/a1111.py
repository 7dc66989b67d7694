"""AUTOMATIC1111's web UI, SD.Next and Forge, which share an API: the checkpoint that your server has loaded."""

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from penstock.providers.convert import first_image, pixels, plain_base64
from penstock.providers.live import Underivable
from penstock.providers.spec import (
    OWN_HARDWARE,
    File,
    Model,
    Operation,
    OwnModel,
    Param,
    Price,
    Provider,
    Reply,
    Result,
    Task,
    complete_table,
    converted,
    emulated,
    fixed,
    passthrough,
    refused,
    renamed,
)
from penstock.values import Frame, InputFile

# Fields with which callers could change the server's settings and files or other users' jobs.
REFUSED = refused(
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
    "hr_checkpoint_name",
    "enable_hr",  # with the next ones: a second pass, which makes another size than was asked for
    "hr_scale",
    "hr_resize_x",
    "hr_resize_y",
    "firstphase_width",
    "firstphase_height",
)


def read_images(reply: Reply) -> Result:
    """Read a list of images, or one image from an upscaler. A grid is not among them, because nothing is saved."""
    response = reply.json
    images = response["images"] if "images" in response else [response["image"]]
    return Result(files=tuple(File(data=image) for image in images if image))


def error_message(reply: Reply) -> str | None:
    """The message or the name of an exception, or FastAPI's first validation error."""
    error = reply.json
    detail = error.get("detail") or error.get("errors") or error["error"]
    return detail if isinstance(detail, str) else detail[0]["msg"]


def basic_auth(key: str) -> Mapping[str, str]:
    """For servers started with --api-auth, if penstock.toml sets a `key_env` that holds `user:password`."""
    return {"authorization": f"Basic {b64encode(key.encode()).decode()}"} if key else {}


def image_and_size(images: Sequence[InputFile]) -> tuple[list[object], int, int]:
    """The image to edit and its size; the server's default size is always 512 x 512."""
    return [plain_base64(images[0])], *FIT_SIZE(Frame(images[0].width, images[0].height))


def add_upscaler(fields: dict[str, Any]) -> dict[str, Any]:
    return {"upscaler_1": "R-ESRGAN 4x+", "upscaling_resize": 2, **fields}


def operation(task: Task, *rows: Param, **fields: Any) -> Operation:
    return Operation(
        task=task,
        send="POST /sdapi/v1/{model}",
        read=read_images,
        safe_to_resubmit=True,
        params=complete_table(task, *rows, *REFUSED),
        **fields,
    )


FIT_SIZE = pixels(multiple=8, min_side=64, max_side=2048)
SHARED = (
    passthrough("prompt", required=True),
    passthrough("negative_prompt"),
    emulated("n", to="n_iter", high=4),
    passthrough("steps", low=1, high=150),
    fixed("save_images", False),
)
IMAGE = operation("image", *SHARED, converted("frame", to=("width", "height"), convert=FIT_SIZE))
EDIT = operation(
    "edit",
    converted(
        "images",
        to=("init_images", "width", "height"),
        convert=image_and_size,
        required=True,
        max_items=1,
    ),
    *SHARED,
    converted("mask", to="mask", convert=plain_base64),
    fixed("inpainting_fill", 1),  # start from the original content
    passthrough("denoising_strength", low=0, high=1),
    settings={"mask": "white"},
)
UPSCALE = operation(
    "upscale",
    converted("images", to="image", convert=first_image(plain_base64), required=True, max_items=1),
    fixed("resize_mode", 0),
    renamed("scale_factor", to="upscaling_resize", low=1, high=8, default=2),
    passthrough("upscaler_1"),
    adjust_body=add_upscaler,
)


def own_models(own: OwnModel) -> tuple[Model, ...]:
    """Models that make and edit images with a checkpoint of the operator's, or with LoRAs on the loaded one."""
    if own.workflow is not None:
        raise Underivable("a workflow is for ComfyUI")
    if strange := [name for name in own.loras if set(name) & set("<>:")]:
        raise Underivable(f"the name of the LoRA {strange[0]} has one of < > : in it")
    found = {"image": ("txt2img", IMAGE), "edit": ("img2img", EDIT)}
    if own.task not in (None, *found):
        raise Underivable(f"task is {own.task}; a checkpoint can do image and edit")
    return tuple(
        Model(id="", upstream=path, op=replace(op, adjust_body=_with_checkpoint(own)), prices=FREE)
        for task, (path, op) in found.items()
        if own.task in (None, task)
    )


def _with_checkpoint(own: OwnModel) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """The server loads the checkpoint for this call and restores the one that was loaded before."""
    words = "".join(f" <lora:{name}:{strength:g}>" for name, strength in own.loras.items())
    settings = {"override_settings": {"sd_model_checkpoint": own.checkpoint}} if own.checkpoint else {}
    return lambda fields: {**fields, "prompt": f"{fields['prompt']}{words}", **settings}


FREE = (Price(unit="image", usd="0", source=OWN_HARDWARE),)
PROVIDER = Provider(
    slug="a1111",
    name="AUTOMATIC1111",
    docs="https://github.com/AUTOMATIC1111/stable-diffusion-webui/wiki/API",
    base_url="http://127.0.0.1:7860",
    self_hosted=True,
    base_url_env="A1111_URL",
    auth=basic_auth,
    error_message=error_message,
    own_models=own_models,
    models=(
        Model(id="a1111/loaded", upstream="txt2img", op=IMAGE, prices=FREE),
        Model(id="a1111/loaded", upstream="img2img", op=EDIT, prices=FREE),
        Model(id="a1111/upscale", upstream="extra-single-image", op=UPSCALE, prices=FREE),
    ),
)
