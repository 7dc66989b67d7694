"""What a seal says: the manifest of an output, as the library takes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from penstock.provenance.xmp import SOURCE_TYPES

Case = Literal["created", "carried"]

SPEC_VERSION = "2.4"
ASSERTION = "org.penstock.request"
PARENT = "parent"  # the id of the provider's file among the ingredients
INPUT = "input"  # that of an input, with its number behind it
# What made an output, in IPTC's words.
MODEL = "trainedAlgorithmicMedia"
MODEL_AND_INPUT = "compositeWithTrainedAlgorithmicMedia"
PROGRAM = "algorithmicMedia"


def source_type(task: str, *, with_video: bool, is_model: bool) -> str:
    """The digital source type of an output: what an edit keeps of its input was not made by the model."""
    if not is_model:
        return PROGRAM
    return MODEL_AND_INPUT if task in ("edit", "upscale") or with_video else MODEL


def manifest(case: Case, facts: Mapping[str, Any], *, converted: bool, inputs: Sequence[str] = ()) -> dict[str, Any]:
    """The manifest of an output.

    `created`: no statement of the provider is kept; `inputs` are the ids of the ingredients that it was made from.
    `carried`: the provider's is kept as the parent, which has to be added as the ingredient `PARENT`. `facts` are those
    of `Sealer`.
    """
    actions: list[dict[str, Any]] = []
    if case == "created":
        created = {
            "action": "c2pa.created",
            "digitalSourceType": SOURCE_TYPES + facts["source_type"],
            "softwareAgent": {"name": facts["request"]["executed_model"]},
            "when": facts["when"],
        }
        if inputs:
            created["parameters"] = {"ingredientIds": list(inputs)}
        actions.append(created)
    else:
        actions.append({"action": "c2pa.opened", "parameters": {"ingredientIds": [PARENT]}})
    if converted:
        actions.append({"action": "c2pa.converted"})
    return {
        "claim_generator_info": [{"name": "Penstock", "version": facts["version"], "specVersion": SPEC_VERSION}],
        "assertions": [
            {"label": "c2pa.actions.v2", "data": {"allActionsIncluded": True, "actions": actions}},
            {"label": ASSERTION, "data": dict(facts["request"])},
        ],
    }
