"""What a seal says of an output."""

import pytest

from penstock.provenance.statement import manifest, source_type

FACTS = {
    "version": "1.0",
    "source_type": "trainedAlgorithmicMedia",
    "when": "2026-11-18T12:00:00Z",
    "request": {"request_id": "req_1", "executed_model": "lab/model"},
}


@pytest.mark.parametrize(
    ("task", "with_video", "is_model", "expected"),
    [
        ("image", False, True, "trainedAlgorithmicMedia"),
        ("video", False, True, "trainedAlgorithmicMedia"),
        ("edit", False, True, "compositeWithTrainedAlgorithmicMedia"),
        ("upscale", False, True, "compositeWithTrainedAlgorithmicMedia"),
        ("video", True, True, "compositeWithTrainedAlgorithmicMedia"),
        ("image", False, False, "algorithmicMedia"),
    ],
)
def test_the_source_type_says_what_made_an_output(task: str, with_video: bool, is_model: bool, expected: str) -> None:
    assert source_type(task, with_video=with_video, is_model=is_model) == expected


def test_a_created_output_names_its_model_and_a_carried_one_its_parent() -> None:
    created = manifest("created", FACTS, converted=True)["assertions"][0]["data"]
    assert created["allActionsIncluded"] is True
    assert [action["action"] for action in created["actions"]] == ["c2pa.created", "c2pa.converted"]
    assert created["actions"][0]["softwareAgent"] == {"name": "lab/model"}
    assert created["actions"][0]["digitalSourceType"].endswith("/trainedAlgorithmicMedia")
    carried = manifest("carried", FACTS, converted=False)["assertions"][0]["data"]
    assert carried["actions"] == [{"action": "c2pa.opened", "parameters": {"ingredientIds": ["parent"]}}]
