"""Workflow files are read within limits, and what a provider refuses is named with its place."""

from pathlib import Path

import pytest

from penstock.models.own_models import own_models, read_workflow
from penstock.providers.a1111 import PROVIDER
from penstock.providers.spec import OwnModel
from penstock.typed_config import Misconfigured


def test_workflows_are_read_within_limits(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"1": {"class_type": "X"}}')
    assert read_workflow("here", tmp_path, "a.json") == {"1": {"class_type": "X"}}
    assert read_workflow("here", Path("elsewhere"), str(tmp_path / "a.json"))
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "large.json").write_bytes(b" " * (5 * 2**20))
    for name, reason in (
        ("b.json", "cannot be read"),
        ("list.json", "not a JSON object"),
        ("large.json", "larger than"),
    ):
        with pytest.raises(Misconfigured, match=rf"here.workflow: .*{name} .*{reason}"):
            read_workflow("here", tmp_path, name)


def test_a_providers_reason_is_named_with_its_place() -> None:
    assert [model.upstream for model in own_models("here", PROVIDER, OwnModel(checkpoint="x"))] == [
        "txt2img",
        "img2img",
    ]
    with pytest.raises(Misconfigured, match="here: a workflow is for ComfyUI"):
        own_models("here", PROVIDER, OwnModel(workflow={}))
