"""What our nodes for ComfyUI ask of a gateway; tests/servers runs the nodes in ComfyUI itself."""

import json
import types
from typing import Any

import pytest

from tests.ports import unused_port
from tests.stories.processes import ROOT, Serving, until

GATEWAY = ROOT / "integrations" / "comfyui" / "gateway.py"
SKETCH = {"model": "atelier/sketch", "prompt": "a fox", "size": "256x256"}


class Stopped(BaseException):
    """What ComfyUI raises when the user stops a workflow."""


@pytest.fixture
def module(served: Serving, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("PENSTOCK_URL", served.url)
    monkeypatch.setenv("PENSTOCK_KEY", served.key)
    module: Any = types.ModuleType("comfyui_gateway")
    exec(GATEWAY.read_text(), module.__dict__)  # noqa: S102 - ComfyUI imports a folder that is no package of ours
    module.POLL_SECONDS = 0.02
    return module


def make(module: Any, path: str, body: dict[str, Any], max_usd: float = 0.1) -> tuple[Any, list[bytes]]:
    made: tuple[Any, list[bytes]] = module.Gateway().make(path, body, max_usd, lambda: None, lambda percent: None)
    return made


def test_images_videos_and_speech_are_made(module: Any) -> None:
    made, files = make(module, f"{module.IMAGES}/generations", {**SKETCH, "n": 2, "mask": None})
    assert (made["metadata"]["cost"], len(files), files[0][1:4]) == (0.002, 2, b"PNG")
    _, [video] = make(module, module.VIDEOS, {"model": "atelier/clip", "prompt": "a fox", "seconds": "1"})
    assert video[4:8] == b"ftyp"
    speech = {"model": "atelier/voice", "input": "Hello.", "response_format": "wav"}
    _, [sound] = make(module, f"{module.SOUNDS}/speech", speech)
    assert sound[:4] == b"RIFF"


def test_models_are_listed_by_what_they_do_and_without_a_gateway_there_are_none(
    module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "atelier/clip" in module.Gateway().models({"text-to-video"})
    monkeypatch.setenv("PENSTOCK_URL", f"http://127.0.0.1:{unused_port()}")
    assert module.Gateway().models({"text-to-video"}) == []


def test_nothing_is_made_above_the_limit(module: Any, served: Serving) -> None:
    with pytest.raises(module.Refused, match=r"may cost up to \$0.0010, which is more than max_usd, \$0.0005"):
        make(module, f"{module.IMAGES}/generations", {**SKETCH, "prompt": "a dear fox"}, 0.0005)
    assert served.call("GET", "/v1/requests?search=dear").json["data"] == []


def test_what_is_refused_fails_or_is_no_gateway_is_said(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(module.Refused, match="MODEL_NOT_FOUND"):
        make(module, f"{module.IMAGES}/generations", {**SKETCH, "model": "atelier/nothing"})
    with pytest.raises(module.Refused, match=r"\("):
        make(module, module.VIDEOS, {"model": "atelier/clip", "prompt": "[fail]", "seconds": "1"})
    monkeypatch.setenv("PENSTOCK_URL", "file:///etc")
    with pytest.raises(module.Refused, match="must begin with http"):
        make(module, module.VIDEOS, {"model": "m"})
    monkeypatch.delenv("PENSTOCK_KEY")
    monkeypatch.setenv("PENSTOCK_URL", "http://127.0.0.1:1")
    with pytest.raises(module.Refused, match="Set PENSTOCK_KEY"):
        make(module, module.VIDEOS, {"model": "m"})


def test_a_workflow_that_is_stopped_cancels_what_it_started(module: Any, served: Serving) -> None:
    def stop() -> None:
        raise Stopped

    body = {"model": "atelier/clip", "prompt": "a stopped walk", "seconds": "10"}
    with pytest.raises(Stopped):
        module.Gateway().make(module.VIDEOS, body, 1.0, stop, lambda percent: None)

    def status() -> str:
        return str(served.call("GET", "/v1/requests?kind=video&limit=1").json["data"][0]["status"])

    until(lambda: status() == "cancelled")


def test_the_key_is_in_no_input_of_a_node() -> None:
    """ComfyUI writes inputs into workflows and into the images themselves."""
    text = (GATEWAY.parent / "nodes.py").read_text()
    assert "PENSTOCK_KEY" in text
    assert "environ" not in text
    assert json.dumps("key") not in text
