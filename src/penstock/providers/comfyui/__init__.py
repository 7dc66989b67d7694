"""ComfyUI 0.7 or later on your own machine, with well-known models that it must have in its folders."""

from hashlib import sha256
from typing import Any
from urllib.parse import urlencode

from penstock.providers.convert import first_image, pixels
from penstock.providers.comfyui.graphs import (
    ENLARGED,
    ESRGAN_FILE,
    FLUX_FILE,
    FLUX_SCHNELL,
    SDXL,
    SDXL_EDIT,
    SDXL_FILE,
    WAN,
    WAN_FILE,
    Graph,
    filled,
)
from penstock.providers.spec import (
    ImageUpload,
    File,
    FailureKind,
    Model,
    Operation,
    Param,
    Price,
    Provider,
    Reply,
    Result,
    Status,
    Task,
    Unit,
    Upload,
    bearer_if_set,
    converted,
    emulated,
    duration,
    renamed,
    complete_table,
)
from penstock.values import InputImage

STATUS: dict[str, Status] = {
    "pending": "queued",
    "in_progress": "in_progress",
    "completed": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
}


def read(reply: Reply) -> Result:
    """A place in the queue, or a job. Nodes name what they made by its folder, films among `images`, too."""
    job = reply.json
    if "prompt_id" in job:
        return Result(status="queued", ref={"id": job["prompt_id"]}, upstream_id=job["prompt_id"])
    lists = [made for node in (job.get("outputs") or {}).values() for made in node.values()]
    named = [one for made in lists for one in made if isinstance(one, dict) and "filename" in one]
    places = [{name: one.get(name, "") for name in ("filename", "subfolder", "type")} for one in named]
    return Result(
        status=STATUS[job["status"]],
        ref={"id": job["id"]},
        upstream_id=job["id"],
        files=tuple(File(url=f"/view?{urlencode(place)}", private=True) for place in places),
        message=(job.get("execution_error") or {}).get("exception_message"),
    )


def error(reply: Reply) -> str | None:
    """What a graph was turned down for, without the list of everything that the machine has."""
    told = reply.json["error"]
    if isinstance(told, str):
        return told
    nodes = (reply.json.get("node_errors") or {}).values()
    wrong = [f"{node['class_type']}: {one['message']}" for node in nodes for one in node["errors"]]
    return f"{told['message']}. {'; '.join(wrong)}".strip()


def kind(reply: Reply) -> FailureKind | None:
    """The graphs are ours: one that it cannot run is no fault of the caller's."""
    return "broken" if reply.status == 400 else None


def left(reference: InputImage) -> tuple[tuple[str, str | Upload], ...]:
    """Among what is swept away when it starts anew, by a name that only the same picture has."""
    name = f"penstock-{sha256(reference.data).hexdigest()[:32]}.{reference.content_type.split('/')[1]}"
    return ("image", Upload(reference.data, reference.content_type, name)), ("type", "temp"), ("overwrite", "true")


def model(name: str, file: str, task: Task, graph: Graph, *rows: Param, unit: Unit = "image", **more: Any) -> Model:
    """Nothing that a caller says has a place in a graph, unless a row puts it there."""
    op = Operation(
        task=task,
        send="POST /prompt",
        model_field=None,
        poll="GET /api/jobs/{id}",
        read=read,
        adjust_body=lambda fields: {"prompt": filled(graph, fields["graph"])},
        params=complete_table(task, *rows),
        image_upload=ImageUpload(send="POST /upload/image", form=left, read=lambda reply: NAME.format(**reply.json)),
        cancel=("POST /queue", "POST /interrupt"),  # for jobs that wait, and for the one that runs
        cancel_body=lambda ref: {"delete": [ref["id"]], "prompt_id": ref["id"]},
        **{"poll_seconds": 1.0, **more},
    )
    return Model(id=name, upstream=file, op=op, prices=(Price(unit=unit, usd="0", note="your own hardware"),))


def size(*limits: int, **more: Any) -> Param:
    return converted("frame", ("graph.canvas.width", "graph.canvas.height"), pixels(*limits), **more)


def named(row: str, to: str, **more: Any) -> Param:
    return converted(row, to, first_image(lambda one: one.name), max_items=1, **more)


NAME = "{name} [{type}]"  # as its nodes speak of a file
WORDS = (
    renamed("prompt", "graph.words.text", required=True),
    renamed("steps", "graph.sampler.steps", low=1, high=150),
    converted("random_seed", "graph.sampler.seed", int),
    renamed("seed", "graph.sampler.seed", low=0, high=2**53),
)
UNWANTED, N = renamed("negative_prompt", "graph.unwanted.text"), emulated("n", "graph.canvas.batch_size", high=4)
PICTURE = named("images", "graph.picture.image", required=True)
MASK = converted("mask", "graph.hole.image", lambda one: one.name)
HOW_FAR = renamed("strength", "graph.sampler.denoise", low=0, high=1)
FACTOR = converted("scale_factor", "graph.fitted.scale_by", lambda factor: factor / 4, low=1, high=4, default=4)
SECONDS = duration(1, 2, 3, 4, 5, to="graph.canvas.seconds", default=5)
PROVIDER = Provider(
    slug="comfyui",
    name="ComfyUI",
    docs="https://docs.comfy.org/development/comfyui-server/comms_routes",
    base_url="http://127.0.0.1:8188",
    base_url_env="COMFYUI_URL",
    error_message=error,
    failure_kind=kind,
    auth=bearer_if_set,
    models=(
        model("comfyui/sdxl", SDXL_FILE, "image", SDXL, *WORDS, UNWANTED, N, size(1024, 8, 256, 2048)),
        model("comfyui/sdxl", SDXL_FILE, "edit", SDXL_EDIT, *WORDS, UNWANTED, PICTURE, MASK, HOW_FAR),
        model("comfyui/flux-schnell", FLUX_FILE, "image", FLUX_SCHNELL, *WORDS, N, size(1024, 16, 256, 2048)),
        model("comfyui/upscale", ESRGAN_FILE, "upscale", ENLARGED, PICTURE, FACTOR),
        model(
            "comfyui/wan-2.2-5b",
            WAN_FILE,
            "video",
            WAN,
            *WORDS,
            UNWANTED,
            SECONDS,
            named("input_reference", "graph.start.image"),
            size(704, 32, 256, 1280, default="16:9"),
            unit="second",
            poll_seconds=3.0,
        ),
    ),
)
