"""Our function in Open WebUI's own server, with a gateway behind it."""

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.request import Request, urlopen

import pytest

from penstock.client.files import input_url
from tests.fake_providers.scripted import png
from tests.ports import unused_port
from tests.servers.installing import executable
from tests.servers.running import RealServer, gateway, skip_unless_installed, started
from tests.stories.processes import ROOT, Serving

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]  # the first test waits until the server has started
FUNCTION = ROOT / "integrations" / "open-webui" / "penstock_function.py"
SECONDS = 120


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with gateway(tmp_path_factory.mktemp("penstock")) as serving:
        yield serving


class OpenWebUI:
    """Calls of Open WebUI's API, as its administrator."""

    def __init__(self, server: RealServer) -> None:
        self._url = server.url
        self._token = ""
        self._token = self.call("/api/v1/auths/signin", {"email": "", "password": ""})["token"]

    def bytes(self, path: str, body: Any = None) -> bytes:
        data = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json", "authorization": f"Bearer {self._token}"}
        with urlopen(Request(self._url + path, data, headers), timeout=SECONDS) as response:  # noqa: S310
            return bytes(response.read())

    def call(self, path: str, body: Any = None) -> Any:
        return json.loads(self.bytes(path, body))

    def chat(self, model: str, content: Any) -> str:
        body = {"model": f"penstock.{model}", "messages": [{"role": "user", "content": content}], "stream": False}
        return str(self.call("/api/chat/completions", body)["choices"][0]["message"]["content"])


@pytest.fixture(scope="module")
def webui(served: Serving, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenWebUI]:
    """A server with the function, switched on and told where the gateway is."""
    skip_unless_installed("openwebui")
    port = unused_port()
    environment = {
        "WEBUI_AUTH": "false", "OFFLINE_MODE": "true", "ENABLE_OLLAMA_API": "false", "ENABLE_OPENAI_API": "false",
        "DATA_DIR": str(tmp_path_factory.mktemp("open-webui")), "WEBUI_SECRET_KEY": "of this test",
    }  # fmt: skip
    command = (executable("openwebui", "open-webui"), "serve", "--host", "127.0.0.1", "--port", str(port))
    with started("openwebui", command, "/health", port, environment) as server:
        found = OpenWebUI(server)
        content = FUNCTION.read_text()
        meta = {"description": "", "manifest": {}}
        found.call("/api/v1/functions/create", {"id": "penstock", "name": "Penstock", "content": content, "meta": meta})
        found.call("/api/v1/functions/id/penstock/toggle", {})
        valves = {"url": served.url, "key": served.key, "ask_above_usd": 0.01}
        found.call("/api/v1/functions/id/penstock/valves/update", valves)
        yield found


def test_the_models_of_the_gateway_are_listed(webui: OpenWebUI) -> None:
    models = {model["id"]: model["name"] for model in webui.call("/api/models")["data"]}
    assert {"penstock.atelier/sketch", "penstock.atelier/clip", "penstock.atelier/voice"} <= models.keys()
    assert "penstock.atelier/echo" not in models
    assert models["penstock.atelier/sketch"].startswith("Penstock: ")


@pytest.mark.parametrize(
    ("model", "shown", "magic"),
    [
        ("atelier/sketch", r"!\[a fox\]\((/api/v1/files/[^)]+)\)", b"\x89PNG"),
        ("atelier/clip", r"<video>(/api/v1/files/.+)</video>", b"ftyp"),
        ("atelier/voice", r"<audio>(/api/v1/files/.+)</audio>", b""),
    ],
)
def test_what_is_made_is_stored_and_shown(webui: OpenWebUI, model: str, shown: str, magic: bytes) -> None:
    fields = {"atelier/sketch": " --size 256x256", "atelier/clip": " --seconds 1 --size 320x180", "atelier/voice": ""}
    answer = webui.chat(model, f"a fox{fields[model]}")
    found = re.fullmatch(shown, answer)
    assert found, answer
    assert magic in webui.bytes(found[1])[:16]


def test_an_attached_image_is_edited(webui: OpenWebUI) -> None:
    parts = [{"type": "text", "text": "at night"}, {"type": "image_url", "image_url": {"url": input_url(png(64, 64))}}]
    assert re.fullmatch(r"!\[at night\]\(/api/v1/files/.+\)", webui.chat("atelier/retouch", parts))
    assert "needs an image" in webui.chat("atelier/retouch", "at night")


def test_what_costs_more_is_not_made_where_nobody_can_be_asked(webui: OpenWebUI, served: Serving) -> None:
    assert "nobody to ask" in webui.chat("atelier/clip", "a very long walk --seconds 10 --n 4")
    rows = served.call("GET", "/v1/requests?search=long").json["data"]
    assert rows == []
