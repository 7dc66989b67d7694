"""ComfyUI 0.7 or later on your own machine, with well-known models that must be in its folders."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any

from penstock.providers.comfyui import graphs, workflows
from penstock.providers.comfyui.replies import error_message, failure_kind, read_job
from penstock.providers.comfyui.workflows import uploaded_name
from penstock.providers.convert import first_image, pixels
from penstock.providers.live import Underivable
from penstock.providers.spec import (
    NEVER_SOUND,
    OWN_HARDWARE,
    ImageUpload,
    Model,
    Operation,
    OwnModel,
    Param,
    Price,
    Provider,
    Reply,
    Task,
    Unit,
    Upload,
    bearer_if_set,
    complete_table,
    converted,
    duration,
    emulated,
    renamed,
)
from penstock.values import InputFile


def upload_form(image: InputFile) -> tuple[tuple[str, str | Upload], ...]:
    """A temporary file, which the server deletes when it restarts; its name depends only on the image."""
    filename = f"penstock-{sha256(image.data).hexdigest()[:32]}.{image.content_type.split('/')[1]}"
    return ("image", Upload(image.data, image.content_type, filename)), ("type", "temp"), ("overwrite", "true")


def read_upload(reply: Reply) -> str:
    """The name that nodes use for an uploaded file."""
    return "{name} [{type}]".format(**reply.json)


def cancel_body(ref: Mapping[str, str]) -> dict[str, Any]:
    """One body for both endpoints: `delete` for a waiting job, `prompt_id` for a running one."""
    return {"delete": [ref["id"]], "prompt_id": ref["id"]}


def fill_graph(graph: graphs.Graph) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A function for `adjust_body` that sends the graph with its values, and nothing else from the caller.

    Some versions do not list the outputs of a job that they find in their cache unless it has a `client_id`.
    """
    return lambda fields: {"prompt": graphs.fill(graph, fields["graph"]), "client_id": "penstock"}


def model(
    name: str,
    file: str,
    task: Task,
    graph: graphs.Graph,
    *rows: Param,
    unit: Unit = "image",
    poll_seconds: float = 1.0,
) -> Model:
    op = Operation(
        task=task,
        send="POST /prompt",
        model_field=None,
        poll="GET /api/jobs/{id}",
        read=read_job,
        read_http_errors=True,
        adjust_body=fill_graph(graph),
        params=complete_table(task, *rows),
        image_upload=ImageUpload(send="POST /upload/image", form=upload_form, read=read_upload),
        cancel=("POST /queue", "POST /interrupt"),  # for a waiting job, and for a running one
        cancel_body=cancel_body,
        poll_seconds=poll_seconds,
    )
    return Model(id=name, upstream=file, op=op, prices=(Price(unit=unit, usd="0", source=OWN_HARDWARE),))


def size(short_side: int, multiple: int, min_side: int, max_side: int, default: str | None = None) -> Param:
    convert = pixels(short_side, multiple, min_side, max_side)
    return converted("frame", to=("graph.latent.width", "graph.latent.height"), convert=convert, default=default)


def scale_after_upscaler(factor: float) -> float:
    """The upscaler's factor is 4; the result is scaled to the factor that the caller wants."""
    return factor / 4


SHARED = (
    renamed("prompt", to="graph.prompt.text", required=True),
    renamed("steps", to="graph.sampler.steps", low=1, high=150),
    converted("random_seed", to="graph.sampler.seed", convert=int),  # used unless the caller gives a seed
    renamed("seed", to="graph.sampler.seed", low=0, high=2**53),
)
NEGATIVE_PROMPT = renamed("negative_prompt", to="graph.negative_prompt.text")
N = emulated("n", to="graph.latent.batch_size", high=4)
INPUT_IMAGE = converted(
    "images", to="graph.input_image.image", convert=first_image(uploaded_name), max_items=1, required=True
)
FIRST_IMAGE = converted(
    "input_reference", to="graph.first_image.image", convert=first_image(uploaded_name), max_items=1
)
MASK = converted("mask", to="graph.mask_image.image", convert=uploaded_name)
STRENGTH = renamed("strength", to="graph.sampler.denoise", low=0, high=1)
FACTOR = converted("scale_factor", to="graph.scaled.scale_by", convert=scale_after_upscaler, low=1, high=4, default=4)
SECONDS = duration(1, 2, 3, 4, 5, to="graph.latent.seconds", default=5)
SDXL_SIZE = size(1024, multiple=8, min_side=256, max_side=2048)
FLUX_SIZE = size(1024, multiple=16, min_side=256, max_side=2048)
WAN_SIZE = size(704, multiple=32, min_side=256, max_side=1280, default="16:9")
SDXL_EDIT_ROWS = (*SHARED, NEGATIVE_PROMPT, INPUT_IMAGE, MASK, STRENGTH)
WAN_ROWS = (*SHARED, NEGATIVE_PROMPT, SECONDS, FIRST_IMAGE, WAN_SIZE, NEVER_SOUND)
BUILT_IN: dict[tuple[str, Task], tuple[graphs.Graph, tuple[Param, ...]]] = {
    ("comfyui/sdxl", "image"): (graphs.SDXL, (*SHARED, NEGATIVE_PROMPT, N, SDXL_SIZE)),
    ("comfyui/sdxl", "edit"): (graphs.SDXL_EDIT, SDXL_EDIT_ROWS),
    ("comfyui/flux-schnell", "image"): (graphs.FLUX_SCHNELL, (*SHARED, N, FLUX_SIZE)),
}


def own_models(own: OwnModel) -> tuple[Model, ...]:
    """The model of an exported workflow, or those of a checkpoint that is used like a built-in one."""
    if own.workflow is not None:
        return (_workflow_model(own, workflows.read_graph(own.workflow)),)
    like = own.like or "comfyui/sdxl"
    found = {task: part for (name, task), part in BUILT_IN.items() if name == like and own.task in (None, task)}
    if not found:
        names = ", ".join(dict.fromkeys(name for name, _ in BUILT_IN))
        raise Underivable(f"a checkpoint makes or edits images like one of {names}")
    return tuple(
        model("", own.checkpoint, task, workflows.with_checkpoint(graph, own.checkpoint, own.loras), *rows)
        for task, (graph, rows) in found.items()
    )


def _workflow_model(own: OwnModel, graph: graphs.Graph) -> Model:
    if own.task is None or own.task == "chat":
        raise Underivable("a workflow needs task: image, edit, upscale or video")
    if own.checkpoint or own.loras:
        raise Underivable("a workflow has its checkpoint and LoRAs in its own nodes")
    made = model("", own.file, own.task, graph, *workflows.rows(own, graph), poll_seconds=3.0)
    return replace(made, op=replace(made.op, adjust_body=workflows.fill(graph), takes_extras=False))


PROVIDER = Provider(
    slug="comfyui",
    name="ComfyUI",
    docs="https://docs.comfy.org/development/comfyui-server/comms_routes",
    base_url="http://127.0.0.1:8188",
    self_hosted=True,
    base_url_env="COMFYUI_URL",
    error_message=error_message,
    failure_kind=failure_kind,
    auth=bearer_if_set,
    own_models=own_models,
    models=(
        model("comfyui/sdxl", graphs.SDXL_FILE, "image", graphs.SDXL, *SHARED, NEGATIVE_PROMPT, N, SDXL_SIZE),
        model("comfyui/sdxl", graphs.SDXL_FILE, "edit", graphs.SDXL_EDIT, *SDXL_EDIT_ROWS),
        model("comfyui/flux-schnell", graphs.FLUX_FILE, "image", graphs.FLUX_SCHNELL, *SHARED, N, FLUX_SIZE),
        model("comfyui/upscale", graphs.ESRGAN_FILE, "upscale", graphs.UPSCALE, INPUT_IMAGE, FACTOR),
        model(
            "comfyui/wan-2.2-5b",
            graphs.WAN_FILE,
            "video",
            graphs.WAN,
            *WAN_ROWS,
            unit="second",
            poll_seconds=3.0,
        ),
    ),
)
