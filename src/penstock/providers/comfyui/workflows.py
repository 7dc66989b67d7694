"""Workflows and checkpoints of an operator's own, for ComfyUI: which of their nodes take what a caller sends."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from penstock.providers.comfyui.graphs import Graph, Node, node
from penstock.providers.convert import first_and_last, first_image, pixels
from penstock.providers.live import Underivable
from penstock.providers.spec import OwnModel, Param, converted, emulated, renamed
from penstock.values import InputFile

# The inputs of nodes that take something, as far as the operator does not name one.
INPUTS: Mapping[str, tuple[str, ...]] = {
    "prompt": ("text", "prompt", "value", "string", "positive"),
    "negative_prompt": ("text", "negative_prompt", "value", "string", "negative"),
    "image": ("image",),
    "last_image": ("image",),
    "mask": ("image", "mask"),
    "seed": ("seed", "noise_seed", "value"),
    "length": ("length", "num_frames", "frames", "video_frames", "frame_count", "value"),
    "steps": ("steps", "value"),
}
SAVING = re.compile(r"save|preview|output|combine|send", re.IGNORECASE)
RATES = ("fps", "frame_rate")
NAMES_SHOWN_MAX = 8


def uploaded_name(image: InputFile) -> str:
    """The name of an uploaded image, which the reply to the upload has."""
    return image.uploaded_name


# ------------------------------------------------------------------------------------------------------------ checking


def read_graph(workflow: Mapping[str, Any]) -> Graph:
    """The nodes of an exported workflow. Raises Underivable if it is something else."""
    if isinstance(workflow.get("nodes"), list):
        raise Underivable('the workflow was saved for the editor; export it with "Export (API)"')
    if not workflow or not all(isinstance(each, Mapping) and "class_type" in each for each in workflow.values()):
        raise Underivable("the workflow is not a graph of nodes")
    if not any(SAVING.search(each["class_type"]) for each in workflow.values()):
        raise Underivable("the workflow has no node that saves or previews what it makes")
    return {str(name): each for name, each in workflow.items()}


def find_node(graph: Graph, written: str) -> str:
    """The id of the node that an operator names by its id or its title. Raises Underivable."""
    if written in graph:
        return written
    titles = {name: str((each.get("_meta") or {}).get("title", "")) for name, each in graph.items()}
    found = [name for name, title in titles.items() if title == written]
    if len(found) == 1:
        return found[0]
    if found:
        raise Underivable(f"several nodes have the title {written}; name one of {', '.join(found)}")
    known = [f"{name} ({title})" if title else name for name, title in titles.items()][:NAMES_SHOWN_MAX]
    raise Underivable(f"there is no node {written}; there are {', '.join(known)}")


def place(graph: Graph, what: str, written: str, names: tuple[str, ...]) -> str:
    """Where a value goes: `graph.6.text`. Raises Underivable if there is no such node or input, or it is connected."""
    title, dot, chosen = written.rpartition(".")
    if not dot or (written in graph):
        title, chosen = written, ""
    name = find_node(graph, title)
    inputs = graph[name].get("inputs") or {}
    candidates = (chosen,) if chosen else names
    found = next((each for each in candidates if each in inputs), None)
    if found is None:
        raise Underivable(
            f"nodes.{what}: node {title} has no input {' or '.join(candidates)}; it has {', '.join(inputs)}"
        )
    if isinstance(inputs[found], list):
        raise Underivable(f"nodes.{what}: the input {found} of node {title} is connected to another node")
    if "." in name:
        raise Underivable(f"nodes.{what}: the id of node {name} has a dot in it")
    return f"graph.{name}.{found}"


def default_of(graph: Graph, path: str) -> Any:
    _, name, found = path.split(".")
    return graph[name]["inputs"][found]


# ---------------------------------------------------------------------------------------------------------------- rows


def rows(own: OwnModel, graph: Graph) -> Iterator[Param]:
    """The rows for the nodes that an operator named. Raises Underivable for what cannot work."""
    _check_task(own)
    for what, written in own.nodes.items():
        if what == "size":
            yield from _size_rows(own, graph, written)
        elif what == "seed":
            path = place(graph, what, written, INPUTS[what])
            yield converted("random_seed", to=path, convert=int)  # used unless the caller gives a seed
            yield renamed("seed", to=path, low=0, high=2**53)
        elif what == "length":
            yield _length_row(own, graph, place(graph, what, written, INPUTS[what]))
        elif what in ("prompt", "negative_prompt"):
            yield renamed(what, to=place(graph, what, written, INPUTS[what]), required=what == "prompt")
        elif what == "mask":
            yield converted("mask", to=place(graph, what, written, INPUTS[what]), convert=uploaded_name)
        elif what not in ("image", "last_image"):
            yield renamed(what, to=place(graph, what, written, INPUTS.get(what, (what,))))
    yield from _image_rows(own, graph)


def _check_task(own: OwnModel) -> None:
    if own.task in ("edit", "upscale") and "image" not in own.nodes:
        raise Underivable(f"task {own.task} needs nodes.image, the node that loads the image")
    if own.task != "upscale" and "prompt" not in own.nodes:
        raise Underivable(f"task {own.task} needs nodes.prompt, the node that takes the prompt")
    if own.task == "image" and {"image", "mask"} & own.nodes.keys():
        raise Underivable("task image takes no image; a workflow that does is an edit, an upscale or a video")
    if own.task != "video" and {"length", "last_image"} & own.nodes.keys():
        raise Underivable("nodes.length and nodes.last_image are for videos")


def _size_rows(own: OwnModel, graph: Graph, written: str) -> Iterator[Param]:
    paths = tuple(place(graph, "size", f"{written}.{side}", (side,)) for side in ("width", "height"))
    yield converted("frame", to=paths, convert=pixels(1024, multiple=8, min_side=64, max_side=4096))
    batch = paths[0].removesuffix("width") + "batch_size"
    name = paths[0].split(".")[1]
    if own.task == "image" and isinstance((graph[name].get("inputs") or {}).get("batch_size"), int):
        yield emulated("n", to=batch, high=4)


def _length_row(own: OwnModel, graph: Graph, path: str) -> Param:
    rate = own.frames_per_second or _rate(graph)
    if not rate:
        raise Underivable("nodes.length needs fps: no node of the workflow says how many frames a second has")
    usual = default_of(graph, path)
    step = next((step for step in (8, 4) if isinstance(usual, int) and usual % step == 1), 0)

    def frames(seconds: float) -> tuple[int]:
        wanted = round(seconds * rate)
        return (wanted // step * step + 1 if step else wanted,)

    return converted("seconds", to=path, convert=frames, default=round(usual / rate) or 1, high=60)


def _rate(graph: Graph) -> float | None:
    found = [(each.get("inputs") or {}).get(name) for each in graph.values() for name in RATES]
    return next((rate for rate in found if isinstance(rate, int | float) and rate > 0), None)


def _image_rows(own: OwnModel, graph: Graph) -> Iterator[Param]:
    if "image" not in own.nodes:
        return
    first = place(graph, "image", own.nodes["image"], INPUTS["image"])
    if own.task != "video":
        yield converted("images", to=first, convert=first_image(uploaded_name), required=True, max_items=1)
    elif "last_image" in own.nodes:
        last = place(graph, "last_image", own.nodes["last_image"], INPUTS["last_image"])
        convert = first_and_last(uploaded_name)
        yield converted("input_reference", to=(first, last), convert=convert, required=True, max_items=2, min_items=2)
    else:
        yield converted("input_reference", to=first, convert=first_image(uploaded_name), required=True, max_items=1)


def fill(graph: Graph) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A function for `adjust_body` that sends the workflow with the caller's values."""

    def body(fields: dict[str, Any]) -> dict[str, Any]:
        values: Mapping[str, Mapping[str, Any]] = fields.get("graph", {})
        filled = {
            name: {"class_type": each["class_type"], "inputs": {**(each.get("inputs") or {}), **values.get(name, {})}}
            for name, each in graph.items()
        }
        return {"prompt": filled, "client_id": "penstock"}

    return body


# --------------------------------------------------------------------------------------------------------- checkpoints


def with_checkpoint(graph: Graph, checkpoint: str, loras: Mapping[str, float]) -> Graph:
    """The graph of a built-in model with another checkpoint, and with LoRAs between it and the nodes that use it."""
    source = "model"
    added: dict[str, Node] = {}
    for number, (name, strength) in enumerate(loras.items(), 1):
        strengths = {"strength_model": strength, "strength_clip": strength}
        added[f"lora{number}"] = node("LoraLoader", model=(source, 0), clip=(source, 1), lora_name=name, **strengths)
        source = f"lora{number}"
    moved = {("model", 0): (source, 0), ("model", 1): (source, 1)}
    changed: dict[str, Node] = {}
    for name, each in graph.items():
        inputs = {key: moved.get(value, value) for key, value in each["inputs"].items()}
        if checkpoint and "ckpt_name" in inputs:
            inputs["ckpt_name"] = checkpoint
        changed[name] = node(each["class_type"], **inputs)
    return {**changed, **added}
