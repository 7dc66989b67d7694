"""ComfyUI's graphs: whole, and filled in without touching the ones they are made from."""

import copy
from typing import Any

import pytest

from penstock.providers.comfyui import graphs
from penstock.providers.comfyui.graphs import Graph, filled

EVERY = {
    "sdxl": graphs.SDXL,
    "edit": graphs.SDXL_EDIT,
    "flux": graphs.FLUX_SCHNELL,
    "enlarged": graphs.ENLARGED,
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
    made = filled(graphs.SDXL, {"words": {"text": "a fox"}, "canvas": {"width": 64}})
    assert made["words"]["inputs"]["text"] == "a fox"
    assert made["canvas"]["inputs"] == {"width": 64, "height": 1024, "batch_size": 1}
    assert made["unwanted"] == graphs.SDXL["unwanted"]


def test_nodes_that_nobody_knows_are_left_out() -> None:
    assert filled(graphs.SDXL, {"evil": {"text": "x"}}).keys() == graphs.SDXL.keys()


def test_a_mask_comes_between_canvas_and_sampler() -> None:
    made = filled(graphs.SDXL_EDIT, {"hole": {"image": "m.png"}, "picture": {"image": "p.png"}})
    assert made["sampler"]["inputs"]["latent_image"] == ("masked", 0)
    assert made["masked"]["inputs"] == {"samples": ("canvas", 0), "mask": ("hole", 1)}
    assert made["hole"]["inputs"] == {"image": "m.png"}
    assert links(made) <= made.keys()


def test_a_film_may_begin_with_a_picture() -> None:
    made = filled(graphs.WAN, {"start": {"image": "p.png"}})
    assert made["canvas"]["inputs"]["start_image"] == ("start", 0)
    assert "start" not in filled(graphs.WAN, {})


@pytest.mark.parametrize(("seconds", "frames"), [(1, 25), (5, 121)])
def test_seconds_are_counted_in_frames(seconds: int, frames: int) -> None:
    canvas = filled(graphs.WAN, {"canvas": {"seconds": seconds}})["canvas"]["inputs"]
    assert (canvas["length"], (canvas["length"] - 1) % 4, "seconds" in canvas) == (frames, 0, False)


def test_templates_stay_as_they_are() -> None:
    told: dict[str, dict[str, Any]] = {"canvas": {"seconds": 2}, "hole": {"image": "m"}, "start": {"image": "s"}}
    before, again = copy.deepcopy(EVERY), copy.deepcopy(told)
    for graph in EVERY.values():
        filled(graph, told)
    assert (before, told) == (EVERY, again)
