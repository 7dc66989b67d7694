"""ComfyUI's graphs: their links are complete, and filling one in does not change the original."""

import copy
from typing import Any

import pytest

from penstock.providers.comfyui import graphs
from penstock.providers.comfyui.graphs import Graph, fill

EVERY = {
    "sdxl": graphs.SDXL,
    "edit": graphs.SDXL_EDIT,
    "flux": graphs.FLUX_SCHNELL,
    "upscale": graphs.UPSCALE,
    "wan": graphs.WAN,
}


def links(graph: Graph) -> set[str]:
    values = [value for node in graph.values() for value in node["inputs"].values()]
    return {value[0] for value in values if isinstance(value, tuple)}


@pytest.mark.parametrize("graph", EVERY.values(), ids=EVERY)
def test_links_lead_to_nodes_and_every_node_is_used(graph: Graph) -> None:
    assert links(graph) <= graph.keys()
    assert graph.keys() - links(graph) == {"result"}


def test_values_go_into_their_nodes() -> None:
    made = fill(graphs.SDXL, {"prompt": {"text": "a fox"}, "latent": {"width": 64}})
    assert made["prompt"]["inputs"]["text"] == "a fox"
    assert made["latent"]["inputs"] == {"width": 64, "height": 1024, "batch_size": 1}
    assert made["negative_prompt"] == graphs.SDXL["negative_prompt"]


def test_unknown_nodes_are_ignored() -> None:
    assert fill(graphs.SDXL, {"evil": {"text": "x"}}).keys() == graphs.SDXL.keys()


def test_a_mask_is_put_before_the_sampler() -> None:
    made = fill(graphs.SDXL_EDIT, {"mask_image": {"image": "m.png"}, "input_image": {"image": "p.png"}})
    assert made["sampler"]["inputs"]["latent_image"] == ("masked", 0)
    assert made["masked"]["inputs"] == {"samples": ("latent", 0), "mask": ("mask_image", 1)}
    assert made["mask_image"]["inputs"] == {"image": "m.png"}
    assert links(made) <= made.keys()


def test_a_video_may_begin_with_a_image() -> None:
    made = fill(graphs.WAN, {"first_image": {"image": "p.png"}})
    assert made["latent"]["inputs"]["start_image"] == ("first_image", 0)
    assert "first_image" not in fill(graphs.WAN, {})


@pytest.mark.parametrize(("seconds", "frames"), [(1, 25), (5, 121)])
def test_seconds_are_counted_in_frames(seconds: int, frames: int) -> None:
    canvas = fill(graphs.WAN, {"latent": {"seconds": seconds}})["latent"]["inputs"]
    assert (canvas["length"], (canvas["length"] - 1) % 4, "seconds" in canvas) == (frames, 0, False)


def test_filling_does_not_change_the_templates() -> None:
    values: dict[str, dict[str, Any]] = {
        "latent": {"seconds": 2},
        "mask_image": {"image": "m"},
        "first_image": {"image": "s"},
    }
    graphs_before = copy.deepcopy(EVERY)
    values_before = copy.deepcopy(values)
    for graph in EVERY.values():
        fill(graph, values)
    assert (EVERY, values) == (graphs_before, values_before)
