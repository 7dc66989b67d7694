"""What is sent and answered, against a description of the same APIs by others: Comfy's, for providers without a client.

It comes with comfy-cli, which `make test-clients` installs apart. Their models are not ours, so names of models may
differ; and errors are those of the proxy that it describes, so only what succeeds is compared.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jsonschema_rs  # comes with schemathesis
import pytest

from tests.fake_providers.bfl import BlackForestLabs
from tests.fake_providers.exchange import Exchange, FakeResponse, ReceivedRequest
from tests.fake_providers.kling import Kling
from tests.fake_providers.ltx import Ltx
from tests.fake_providers.minimax import MiniMax
from tests.fake_providers.recraft import Recraft
from tests.fake_providers.server import FakeProvider
from tests.fake_providers.vidu import Vidu
from tests.fake_providers.xai import XAI
from tests.gateway import OpenGateway
from tests.providers.calls import create_image, create_video, gateway_for
from tests.providers.recordings import recordings

pytestmark = pytest.mark.clients

# By slug: how the provider's own path is found in the description.
PATHS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "bfl": ((r"/v1/(flux-(?!3)[^/]+)", r"/proxy/bfl/\1/generate"), (r"/v1/(.+)", r"/proxy/bfl/v1/\1")),
    "ideogram": ((r"/v1/(.+)", r"/proxy/ideogram/\1"),),
    "kling": ((r"/v1/(.+)", r"/proxy/kling/v1/\1"),),
    "ltx": ((r"/v2/(.+)", r"/proxy/ltx/v2/\1"),),
    "minimax": ((r"/v1/(.+)", r"/proxy/minimax/\1"), (r"/v2/(.+)", r"/proxy/minimax/v2/\1")),
    "recraft": ((r"/v1/images/generations", "/proxy/recraft/image_generation"),),
    "vidu": ((r"/ent/v2/(.+)", r"/proxy/vidu/\1"),),
    "xai": ((r"/v1/(.+)", r"/proxy/xai/v1/\1"),),
}
# Where the description is known to be narrower than the provider: an objectionable image has no address, a video may
# fail, and a question that comes too often is answered with status 200 and no task.
NARROW = {
    ("ideogram", "data/0/url"),
    ("xai", "status"),
    ("minimax", ""),
}


@cache
def described() -> dict[str, Any]:
    import yaml  # type: ignore[import-untyped]  # 1.2 MB: not before it is needed

    package = find_spec("comfy_cli")
    assert package, "`make test-clients` installs it"
    assert package.origin
    text = (Path(package.origin).parent / "command/generate/spec/openapi.yml").read_text()
    found: dict[str, Any] = yaml.load(text, Loader=yaml.CSafeLoader)
    return found


def operation(slug: str, method: str, url: str) -> dict[str, Any] | None:
    path = urlsplit(url).path
    for pattern, there in PATHS[slug]:
        if re.fullmatch(pattern, path):
            path = re.sub(pattern, there, path)
            break
    for template, item in described()["paths"].items():
        if method.lower() in item and re.fullmatch(re.sub(r"{[^}]+}", "[^/]+", template), path):
            return dict(item[method.lower()])
    return None


def resolved(node: Any) -> Any:
    """OpenAPI's `nullable` is no word of JSON Schema's."""
    if isinstance(node, list):
        return [resolved(item) for item in node]
    if not isinstance(node, dict):
        return node
    plain = {name: resolved(item) for name, item in node.items() if name != "nullable"}
    return {"anyOf": [plain, {"type": "null"}]} if node.get("nullable") is True else plain


@cache
def components() -> Any:
    return resolved(described()["components"])


def breaches(slug: str, holder: Any, value: Any) -> Iterator[str]:
    """Against the JSON schema of a request or a response, if it has one."""
    while "$ref" in holder:
        *_, kind, name = holder["$ref"].split("/")
        holder = described()["components"][kind][name]
    schema = holder.get("content", {}).get("application/json", {}).get("schema")
    if schema is None:
        return
    validator = jsonschema_rs.validator_for({"allOf": [resolved(schema)], "components": components()})
    for problem in validator.iter_errors(value):
        place = "/".join(map(str, problem.instance_path))
        if place not in ("model", "model_name") and (slug, place) not in NARROW:
            yield f"{place}: {problem.message}"


# ------------------------------------------------------------------------------------------------------------ exchanges

OURS = [recording for recording in recordings() if recording.slug in PATHS]


@pytest.mark.parametrize("slug", PATHS)
def test_exchanges_fit_the_description(slug: str) -> None:
    compared, found = 0, list[str]()
    for recording in (described for described in OURS if described.slug == slug):
        for exchange in recording.content["exchanges"]:
            sent = exchange["sent"]
            if (known := operation(slug, sent["method"], sent["url"])) is None:
                continue
            if "body" in sent and "requestBody" in known:
                compared += 1
                found += (f"{recording}: {breach}" for breach in breaches(slug, known["requestBody"], sent["body"]))
            status = str(exchange["reply"].get("status", 200))
            if status in known["responses"] and status < "300" and "json" in exchange["reply"]:
                compared += 1
                details = breaches(slug, known["responses"][status], exchange["reply"]["json"])
                found += (f"{recording}: {detail}" for detail in details)
    assert compared >= 4
    assert not found, "\n" + "\n".join(found)


# ----------------------------------------------------------------------------------------------------------- simulators

H3 = ("queued", "running", "succeeded")  # MiniMax's second API has words of its own
# A provider and its simulator, where that is mounted, and models that between them make it say what it can.
SIMULATORS: tuple[tuple[str, Callable[[], FakeProvider], str, tuple[str, ...]], ...] = (
    ("bfl", BlackForestLabs, "", ("flux-2-pro", "flux-3-video")),
    ("kling", Kling, "", ("kling-3",)),
    ("ltx", Ltx, "", ("ltx-2.5-fast",)),
    ("minimax", MiniMax, "", ("hailuo-2.3",)),
    ("minimax", lambda: MiniMax(H3), "", ("minimax/h3",)),
    ("recraft", Recraft, "/v1", ("recraft-v3",)),
    ("vidu", Vidu, "/ent/v2", ("vidu-q3",)),
    ("xai", XAI, "/v1", ("grok-imagine-image", "grok-imagine-video")),
)


def record_responses(fake: FakeProvider) -> list[tuple[str, str, Any]]:
    """A list that gets all JSON responses from now on, each with the method and the path of its request."""
    responses: list[tuple[str, str, Any]] = []
    find_route = fake._find_route

    def find_and_record(request: ReceivedRequest) -> tuple[str, Mapping[str, str], Callable[[Exchange], FakeResponse]]:
        name, params, make = find_route(request)

        def make_and_record(exchange: Exchange) -> FakeResponse:
            response = make(exchange)
            if response.json is not None:
                responses.append((request.method, request.path, response.json))
            return response

        return name, params, make_and_record

    fake._find_route = find_and_record  # type: ignore[method-assign]
    return responses


@pytest.mark.parametrize(("slug", "simulated", "path", "models"), SIMULATORS)
async def test_simulators_fit_the_description(
    open_gateway: OpenGateway, slug: str, simulated: Callable[[], FakeProvider], path: str, models: tuple[str, ...]
) -> None:
    provider = simulated()
    responses = record_responses(provider)
    found: list[str] = []
    compared = 0
    async with gateway_for(open_gateway, slug, provider, path) as running:
        for model in models:
            option = running.gateway.catalog.known_route(model, ("image", "video")).first
            made = await (create_video if option.model.op.task == "video" else create_image)(running, model=model)
            assert made["status"] == "completed", made
    for method, asked, received in responses:
        if known := operation(slug, method, asked):
            shape = next(
                response_shape for status, response_shape in known["responses"].items() if status.startswith("2")
            )
            found += breaches(slug, shape, received)
            compared += 1
    assert compared
    assert not found, "\n" + "\n".join(found)
