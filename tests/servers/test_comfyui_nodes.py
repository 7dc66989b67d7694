"""Our nodes in ComfyUI itself, with a gateway behind them."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tests.fake_providers.scripted import png
from tests.ports import unused_port
from tests.servers.installing import COMFYUI_FOLDER, SCRIPTS, python
from tests.servers.running import RealServer, gateway, skip_unless_installed, started
from tests.stories.processes import ROOT, Serving, until

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]  # the first test waits until the server has started
NODES = ROOT / "integrations" / "comfyui"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with gateway(tmp_path_factory.mktemp("penstock")) as serving:
        yield serving


@pytest.fixture(scope="module")
def comfyui(served: Serving, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    """A ComfyUI with our nodes in `custom_nodes`, and no others."""
    skip_unless_installed("comfyui")
    data = tmp_path_factory.mktemp("comfyui")
    shutil.copytree(NODES, data / "custom_nodes" / "penstock")
    (data / "input").mkdir()
    (data / "input" / "lake.png").write_bytes(png(256, 256))
    port = unused_port()
    folder = Path(os.environ[COMFYUI_FOLDER]).resolve()
    command = (python("comfyui"), SCRIPTS / "serve_comfyui.py", folder, data, str(port), "penstock")
    environment = {"OMP_NUM_THREADS": "1", "PENSTOCK_URL": served.url, "PENSTOCK_KEY": served.key}
    with started("comfyui-nodes", command, "/system_stats", port, environment) as server:
        yield server


def post(server: RealServer, path: str, body: Any) -> Any:
    request = Request(server.url + path, json.dumps(body).encode(), {"content-type": "application/json"})  # noqa: S310
    with urlopen(request, timeout=60) as response:  # noqa: S310
        return json.loads(response.read() or b"null")


def run(server: RealServer, workflow: dict[str, Any]) -> dict[str, Any]:
    """Run a workflow to its end, and return what ComfyUI's history says of it."""
    name = post(server, "/prompt", {"prompt": workflow})["prompt_id"]
    until(lambda: name in server.get(f"/history/{name}"), 120)
    return dict(server.get(f"/history/{name}")[name])


def node(kind: str, **inputs: Any) -> dict[str, Any]:
    return {"class_type": kind, "inputs": inputs}


def files(server: RealServer, history: dict[str, Any], save: str, kind: str = "images") -> list[bytes]:
    assert history["status"]["status_str"] == "success", history["status"]
    found = []
    for each in history["outputs"][save][kind]:
        query = f"filename={each['filename']}&subfolder={each['subfolder']}&type={each['type']}"
        with urlopen(f"{server.url}/view?{query}", timeout=60) as response:  # noqa: S310
            found.append(response.read())
    return found


def size(image: bytes) -> tuple[int, int]:
    return int.from_bytes(image[16:20], "big"), int.from_bytes(image[20:24], "big")


def image(model: str = "atelier/sketch", prompt: str = "a fox", **inputs: Any) -> dict[str, Any]:
    return node("PenstockImage", **{"model": model, "prompt": prompt, "size": "256x256", "n": 1, "seed": 7, **inputs})


def test_the_models_of_the_gateway_are_listed(comfyui: RealServer) -> None:
    listed = comfyui.get("/object_info/PenstockImage")["PenstockImage"]["input"]["required"]["model"][0]
    assert {"atelier/sketch", "atelier/retouch", "atelier/enlarge"} <= set(listed)
    assert "atelier/clip" not in listed
    assert "atelier/clip" in comfyui.get("/object_info/PenstockVideo")["PenstockVideo"]["input"]["required"]["model"][0]


def test_images_are_made_edited_within_a_mask_and_enlarged(comfyui: RealServer, served: Serving) -> None:
    history = run(
        comfyui,
        {
            "lake": node("LoadImage", image="lake.png"),
            "mask": node("SolidMask", value=1.0, width=256, height=256),
            "fox": image(n=2),
            "night": image("atelier/retouch", "at night", images=["lake", 0], mask=["mask", 0]),
            "large": image("atelier/enlarge", "", images=["night", 0], fields='{"scale_factor": 2}'),
            "save": node("SaveImage", images=["large", 0], filename_prefix="large"),
            "foxes": node("SaveImage", images=["fox", 0], filename_prefix="fox"),
        },
    )
    assert [size(each) for each in files(comfyui, history, "foxes")] == [(256, 256)] * 2
    assert [size(each) for each in files(comfyui, history, "save")] == [(512, 512)]
    kinds = [row["kind"] for row in served.call("GET", "/v1/requests?limit=3").json["data"]]
    assert sorted(kinds) == ["edit", "image", "upscale"]


def test_a_video_is_made_from_its_first_frame(comfyui: RealServer) -> None:
    video = node(
        "PenstockVideo", model="atelier/clip", prompt="waves", seconds=1.0, size="320x180", first_frame=["fox", 0]
    )
    save = node("SaveVideo", video=["video", 0], filename_prefix="waves", format="mp4", codec="h264")
    history = run(comfyui, {"fox": image(), "video": video, "save": save})
    assert b"ftyp" in files(comfyui, history, "save")[0][:16]


def test_a_text_is_spoken(comfyui: RealServer) -> None:
    speech = node("PenstockSpeech", model="atelier/voice", text="Good morning.", voice="nova")
    shown = node("PreviewAny", source=["speech", 1])
    history = run(comfyui, {"speech": speech, "shown": shown})
    [told] = history["outputs"]["shown"]["text"]
    assert json.loads(told)["model"] == "atelier/voice"
    assert json.loads(told)["cost_usd"] == 0.000013


def failure(history: dict[str, Any]) -> str:
    assert history["status"]["status_str"] == "error", history["status"]
    return next(str(event["exception_message"]) for kind, event in history["status"]["messages"] if "error" in kind)


def test_what_costs_too_much_or_is_refused_is_said_at_the_node(comfyui: RealServer, served: Serving) -> None:
    before = len(served.call("GET", "/v1/requests?status=completed&limit=100").json["data"])
    for inputs, said in (
        ({"n": 10, "max_usd": 0.005}, "may cost up to $0.0100, which is more than max_usd"),
        ({"model": "atelier/nothing"}, "MODEL_NOT_FOUND"),
        ({"fields": "[1]"}, "must be a JSON object"),
    ):
        workflow = {"fox": image(**inputs), "save": node("PreviewImage", images=["fox", 0])}
        assert said in failure(run(comfyui, workflow))
    assert len(served.call("GET", "/v1/requests?status=completed&limit=100").json["data"]) == before


def test_a_workflow_that_is_stopped_cancels_its_video(comfyui: RealServer, served: Serving) -> None:
    video = node("PenstockVideo", model="atelier/clip", prompt="a stopped walk", seconds=10.0, size="1280x720")
    save = node("SaveVideo", video=["video", 0], filename_prefix="walk", format="mp4", codec="h264")
    name = post(comfyui, "/prompt", {"prompt": {"video": video, "save": save}})["prompt_id"]

    def newest() -> Any:
        return served.call("GET", "/v1/requests?kind=video&limit=1").json["data"][0]

    until(lambda: newest()["status"] in ("pending", "processing"))
    post(comfyui, "/interrupt", {})
    until(lambda: newest()["status"] == "cancelled", 60)
    assert name
