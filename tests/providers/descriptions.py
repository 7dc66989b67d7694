"""What providers and others publish about the providers' requests, as JSON Schemas to compare ours with.

Most of it is in client libraries, which `make setup` installs. Six packages are only read and never run: Comfy's
command line, which has an OpenAPI document of the providers behind its nodes, the clients of Together, Cloudflare,
Runware and Leonardo, and tools for images on Bedrock. They are installed apart, without their requirements
(descriptions.txt).
fal_types.json and npm_types.json are made from packages for Node, and pages.txt was written by hand from pages of
documentation. Providers that speak OpenAI's API are compared with OpenAI's client.
"""

import importlib
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema_rs

from penstock.providers.spec import Model, Provider
from tests.providers import json_schemas, pages
from tests.providers.json_schemas import Schema
from tests.providers.recordings import UNLIKE_IMAGES
from tests.providers.sweep import requests

HERE = Path(__file__).parent
APART = Path(sys.prefix) / "descriptions"


Body = Mapping[str, Any]


class Validator:
    """A JSON Schema of bodies, and what compares a body with it."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._validator = jsonschema_rs.Draft202012Validator(schema)

    def errors(self, body: Any) -> Iterator[jsonschema_rs.ValidationError]:
        """Where a body does not fit."""
        return self._validator.iter_errors(body)


@dataclass(frozen=True)
class Description:
    """What one source says about a provider's requests: it finds the validator for a path and a body, or None."""

    source: str
    find: Callable[[str, Body], Validator | None]


# --------------------------------------------------------------------------------------------------------------- Comfy

# By provider: how the provider's own path is found in Comfy's document.
COMFY_PATHS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "bfl": ((r"/v1/(flux-(?!3)[^/]+)", r"/proxy/bfl/\1/generate"), (r"/v1/(.+)", r"/proxy/bfl/v1/\1")),
    "bria": ((r"/(.+)", r"/proxy/bria/\1"),),
    "bytedance": ((r"/api/v3/(.+)", r"/proxy/byteplus/api/v3/\1"),),
    "dashscope": ((r"/api/v1/(.+)", r"/proxy/wan/api/v1/\1"),),
    "gemini-omni": ((r"/v1beta/interactions", "/proxy/gemini-interactions"),),
    "elevenlabs": ((r"/v1/(.+)", r"/proxy/elevenlabs/v1/\1"),),
    "heygen": ((r"/(.+)", r"/proxy/heygen/\1"),),
    "ideogram": ((r"/v1/(.+)", r"/proxy/ideogram/\1"),),
    "kling": ((r"/(.+)", r"/proxy/kling/\1"),),
    "krea": ((r"/(.+)", r"/proxy/krea/\1"),),
    "ltx": ((r"/v2/(.+)", r"/proxy/ltx/v2/\1"),),
    "magnific": ((r"/(.+)", r"/proxy/freepik/\1"),),
    "meta": ((r"/(.+)", r"/proxy/meta/\1"),),
    "minimax": ((r"/v1/(.+)", r"/proxy/minimax/\1"), (r"/v2/(.+)", r"/proxy/minimax/v2/\1")),
    "pixverse": ((r"/openapi/v2/(.+)", r"/proxy/pixverse/\1"),),
    "qwen": ((r"/(.+)", r"/proxy/qwen/\1"),),
    "recraft": (
        (r"/v1/images/generations", "/proxy/recraft/image_generation"),
        (r"/v1/images/(.+)", r"/proxy/recraft/images/\1"),
    ),
    "topaz": ((r"/(.+)", r"/proxy/topaz/\1"),),
    "vertex": ((r".*/models/([^:]+):predictLongRunning", r"/proxy/veo/\1/generate"),),
    "vidu": ((r"/ent/v2/(.+)", r"/proxy/vidu/\1"),),
    "wavespeed": ((r"/(.+)", r"/proxy/wavespeed/\1"),),
    "xai": ((r"/v1/(.+)", r"/proxy/xai/v1/\1"),),
}


@cache
def comfy_document() -> dict[str, Any]:
    path = APART / "comfy_cli/command/generate/spec/openapi.yml"
    document: dict[str, Any] = json.loads(path.read_text())  # in spite of its name
    return document


def comfy_operation(slug: str, method: str, path: str) -> dict[str, Any] | None:
    """The operation in Comfy's document for a method and path of the provider."""
    for pattern, there in COMFY_PATHS[slug]:
        if re.fullmatch(pattern, path):
            path = re.sub(pattern, there, path)
            break
    for template, item in comfy_document()["paths"].items():
        if method.lower() in item and re.fullmatch(re.sub(r"{[^}]+}", "[^/]+", template), path):
            return dict(item[method.lower()])
    return None


@cache
def comfy(slug: str, path: str) -> Validator | None:
    if (slug, path) == ("topaz", "/video/"):
        return topaz_video()
    operation = comfy_operation(slug, "post", path)
    schema = operation and content_schema(operation["requestBody"])
    return Validator(schema) if schema else None


@cache
def topaz_video() -> Validator:
    """Of the two ways to send a video, the one that is a file."""
    schema = {"$ref": "#/components/schemas/TopazCreateRequestVideoSchema"}
    return Validator({**json_schemas.closed(schema), "components": _comfy_components()})


def content_schema(holder: Any) -> Schema | None:
    """The schema of a request or response in Comfy's document, with the parts that it refers to."""
    while "$ref" in holder:
        *_, kind, name = holder["$ref"].split("/")
        holder = comfy_document()["components"][kind][name]
    schemas = [media["schema"] for media in holder.get("content", {}).values() if "schema" in media]
    return {**json_schemas.closed(schemas[0]), "components": _comfy_components()} if schemas else None


@cache
def _comfy_components() -> dict[str, Any]:
    parts = comfy_document()["components"]["schemas"]
    return {"schemas": {name: json_schemas.open_parts(part) for name, part in parts.items()}}


# -------------------------------------------------------------------------------------------------------------- clients


def parameters(package: str, module: str, name: str) -> Schema:
    """The schema of a parameters type in a client library, read without the rest of the library."""
    spec = find_spec(package)
    folder = Path(next(iter(spec.submodule_search_locations or ()))) if spec else APART / package
    alias = f"_{package}_types"
    parts = ("types", *module.split(".")[:-1])
    for depth in range(len(parts) + 1):
        parent = ".".join((alias, *parts[:depth]))
        if parent not in sys.modules:
            sys.modules[parent] = ModuleType(parent)
            sys.modules[parent].__path__ = [str(folder.joinpath(*parts[:depth]))]
    return json_schemas.of_type(getattr(importlib.import_module(f"{alias}.types.{module}"), name))


def import_apart(module: str) -> ModuleType:
    """A module of a package that is installed apart."""
    sys.path.append(str(APART))
    try:
        return importlib.import_module(module)
    finally:
        sys.path.remove(str(APART))


@cache
def openai(operation: str) -> Validator:
    kind = "edit" if operation == "edits" else "generate"
    module, name = f"image_{kind}_params", f"Image{kind.title()}"
    schema = parameters("openai", module, f"{name}ParamsNonStreaming")
    schema["properties"]["stream"] = {"enum": [True, "true"]}  # the types for streams are others; a form has text
    if operation != "edits":
        return Validator(schema)
    schema["properties"]["image[]"] = schema["properties"]["image"]  # the name of a list in a form
    schema["required"].remove("image")
    return Validator(schema | {"anyOf": [{"required": ["image[]"]}, {"required": ["image"]}]})


@cache
def runway(operation: str, model: str) -> Validator:
    """Runway's types are unions over the models."""
    title = "".join(word.title() for word in operation.split("_"))
    union = parameters("runwayml", f"{operation}_create_params", f"{title}CreateParams")
    return Validator(next(part for part in union["anyOf"] if model in part["properties"]["model"]["enum"]))


@cache
def cloudflare() -> Validator:
    schema = parameters("cloudflare", "ai.ai_run_params", "TextToImage")
    del schema["properties"]["account_id"]  # it is in the path
    return Validator(schema | {"required": ["prompt"]})


# The types of Runware's client, by model.
RUNWARE_TYPES = {"runware:100@1": "BflFlux1SchnellParams", "runware:101@1": "BflFlux1DevParams"}


@cache
def runware(model: str) -> Validator:
    return Validator(parameters("runware", "task_map", RUNWARE_TYPES[model]))


# The types of the tools for Bedrock, by a word in the model's name: their module and name.
BEDROCK_TYPES = {
    "sd3-5-large": ("sd35_models", "SD35TextToImageParams"),
    "stable-image-ultra": ("stable_image_models", "StableImageParams"),
    "stable-image-core": ("stable_image_models", "StableImageParams"),
    "stable-image-inpaint": ("stability_models", "InpaintParams"),
    "stable-fast-upscale": ("stability_models", "FastUpscaleParams"),
    "stable-conservative-upscale": ("stability_models", "ConservativeUpscaleParams"),
    "stable-creative-upscale": ("stability_models", "CreativeUpscaleParams"),
}


@cache
def bedrock(path: str, mode: str | None) -> Validator:
    """The parameters of a model. The `mode` of Stable Diffusion is added by the tools' code, not by their types."""
    module, name = next(found for word, found in BEDROCK_TYPES.items() if word in path)
    if mode == "image-to-image":
        name = "SD35ImageToImageParams"
    models = import_apart(f"awslabs.bedrock_image_mcp_server.models.{module}")
    schema = json_schemas.of_pydantic(getattr(models, name))
    if name.startswith("SD35"):
        schema["properties"]["mode"] = {"enum": ["text-to-image", "image-to-image"]}
    return Validator(schema)


@cache
def leonardo() -> Validator:
    """The body for a video; the client does not have the newer endpoint for images."""
    module = import_apart("leonardo_ai_sdk.models.operations.createtexttovideogeneration")
    return Validator(json_schemas.of_pydantic(module.CreateTextToVideoGenerationRequestBody))


@cache
def luma() -> Validator:
    return Validator(parameters("luma_agents", "generation_create_params", "GenerationCreateParams"))


@cache
def together(operation: str) -> Validator:
    if operation == "videos":
        return Validator(parameters("together", "video_create_params", "VideoCreateParams"))
    return Validator(parameters("together", "image_generate_params", "ImageGenerateParams"))


@cache
def openrouter(operation: str) -> Validator:
    from openrouter.components import ImageGenerationRequest, VideoGenerationRequest

    return Validator(
        json_schemas.of_pydantic(VideoGenerationRequest if operation == "videos" else ImageGenerationRequest)
    )


@cache
def google() -> Validator:
    """A message and its settings. On the wire, the settings of images are among those of the generation."""
    from google.genai import types

    models = (types.Content, types.GenerationConfig, types.ImageConfig)
    content, config, image = (json_schemas.of_pydantic(model) for model in models)
    parts = content.pop("$defs") | config.pop("$defs") | image.pop("$defs")
    config["properties"]["imageConfig"] = image
    return Validator(
        {
            "properties": {"contents": {"type": "array", "items": content}, "generationConfig": config},
            "required": ["contents"],
            "additionalProperties": False,
            "$defs": parts,
        }
    )


@cache
def interactions() -> Validator:
    from google.genai._gaos.types.interactions.createmodelinteraction import CreateModelInteraction

    return Validator(json_schemas.of_pydantic(CreateModelInteraction))


@cache
def fal(endpoint: str) -> Validator | None:
    described = fal_document()
    name = described["endpoints"].get(endpoint)
    return Validator({**described["types"][name], "types": described["types"]}) if name else None


@cache
def fal_document() -> dict[str, Any]:
    document: dict[str, Any] = json.loads((HERE / "fal_types.json").read_text())
    return document


@cache
def npm_document() -> dict[str, Any]:
    document: dict[str, Any] = json.loads((HERE / "npm_types.json").read_text())
    return document


@cache
def npm(section: str, name: str) -> Validator | None:
    schema = npm_document()[section]["schemas"].get(name)
    return Validator(schema) if schema else None


# ------------------------------------------------------------------------------------------------------- all of them


@cache
def _versions() -> Mapping[str, str]:
    found = (*distributions(), *distributions(path=[str(APART)]))
    return {str(package.metadata["name"]).lower(): package.version for package in found}


def _package(name: str, find: Callable[[str, Body], Validator | None]) -> Description:
    return Description(f"{name} {_versions().get(name, '(not installed)')}", find)


def _npm(section: str, name: Callable[[str], str]) -> Description:
    """A description in npm_types.json, where it is found by a name that is made of the path."""
    return Description(npm_document()[section]["source"], lambda path, body: npm(section, name(path)))


@cache
def _page(slug: str, source: str, path: str) -> Validator | None:
    found = pages.pages()[slug].get(path)
    return Validator(found[1]) if found and found[0] == source else None


def _of_page(slug: str, source: str) -> Description:
    return Description(f"pages of {source}", lambda path, body: _page(slug, source, path))


def _of_pages(slug: str) -> tuple[Description, ...]:
    """The pages about a provider: a description for each place where they were read."""
    sources = dict.fromkeys(source for source, _ in pages.pages()[slug].values())
    return tuple(_of_page(slug, source) for source in sources)


def _of_comfy(slug: str) -> Description:
    return _package("comfy-cli", lambda path, body: comfy(slug, path))


@cache
def descriptions() -> Mapping[str, tuple[Description, ...]]:
    """The descriptions of each provider, by slug."""
    found: dict[str, tuple[Description, ...]] = {slug: (_of_comfy(slug),) for slug in COMFY_PATHS}
    found |= {
        "azure": (_package("openai", lambda path, body: openai(_last(path)) if path.startswith("/openai/") else None),),
        "bedrock": (_package("bedrock-image-mcp-server", lambda path, body: bedrock(path, body.get("mode"))),),
        "cloudflare": (_package("cloudflare", lambda path, body: cloudflare()),),
        "deepinfra": (_package("openai", lambda path, body: openai(_last(path))),),
        "fal": (Description("@fal-ai/client 1.10.1", lambda path, body: fal(path.lstrip("/"))),),
        "fireworks": (_npm("fireworks", lambda path: "" if _last(path) == "get_result" else "image"),),
        "gemini-omni": (
            _package("google-genai", lambda path, body: interactions() if _last(path) == "interactions" else None),
            _of_comfy("gemini-omni"),
        ),
        "google": (_package("google-genai", lambda path, body: google()),),
        "huggingface": (
            Description("@fal-ai/client 1.10.1", lambda path, body: fal(path.removeprefix("/fal-ai/"))),
            _package("openai", lambda path, body: openai(_last(path)) if path.startswith("/nscale/") else None),
        ),
        "leonardo": (
            _package("leonardo-ai-sdk", lambda path, body: leonardo() if path.endswith("-to-video") else None),
        ),
        "luma": (_package("luma-agents", lambda path, body: luma()),),
        "openai": (_package("openai", lambda path, body: openai(_last(path))),),
        "openrouter": (_package("openrouter", lambda path, body: openrouter(_last(path))),),
        "runware": (_package("runware-sdk", lambda path, body: runware(body["model"])),),
        "runway": (_package("runwayml", lambda path, body: runway(_last(path), body["model"])),),
        "topaz": (
            _package("comfy-cli", lambda path, body: topaz_video() if path == "/video/" else comfy("topaz", path)),
        ),
        "stability": (_npm("stability", lambda path: path),),
        "together": (_package("together", lambda path, body: together(_last(path))),),
        "vertex": (
            _package("google-genai", lambda path, body: google() if path.endswith(":generateContent") else None),
            _of_comfy("vertex"),
        ),
    }
    return found | {slug: (*found.get(slug, ()), *_of_pages(slug)) for slug in pages.pages()}


def _last(path: str) -> str:
    return path.rpartition("/")[2]


# Where a description is known to be narrower or older than the provider: what it says, and how we know better.
NARROWER: Mapping[str, tuple[tuple[str, str], ...]] = {
    "bfl": ((r"(width|height): .* is less than the minimum of 256", "docs.bfl.ai/flux_2: from 64 pixels"),),
    "bytedance": (
        (r"model: ", "Comfy lists older models; docs.byteplus.com has these"),
        (r"content/0/text: .* is longer than 4096", "docs.together.ai: Seedance 2.5 takes 10,000 characters"),
        (r"'safety_identifier' was unexpected", "byteplus-python-sdk-v2 3.0.63 sends it"),
    ),
    "fal": (
        (r'resolution: "4k" is not one of "720p" or "1080p"', "the types are of May; fal.ai/models/fal-ai/veo3.1"),
    ),
    "ideogram": ((r'"rendering_speed" is a required', "Comfy requires it; developer.ideogram.ai has a default"),),
    "ltx": ((r"model: ", "Comfy offers 2.5 only; docs.ltx.video has 2.3 as well"),),
    "minimax": (
        (r"model: ", "Comfy lists older models; platform.minimax.io has these"),
        (r"'last_frame_image' was unexpected", "platform.minimax.io has it for Hailuo 02"),
    ),
    "recraft": (
        (r"'image_format' was unexpected", "recraft.ai/docs/api-reference/clients names it"),
        (r"n: . is greater than the maximum of 4", "recraft.ai/docs/api-reference allows six"),
        (
            r"'file' was unexpected|\"image\" is a required property",
            "recraft.ai/docs/api-reference: upscalers take `file`",
        ),
    ),
    "topaz": ((r"filters/0: ", "Comfy lists older models; developer.topazlabs.com has these"),),
    "xai": (
        (r"'generate_audio' was unexpected", "@ai-sdk/xai 5.0.12 sends it"),
        (r"'last_frame' w(as|ere) unexpected", "@ai-sdk/xai 5.0.12 sends it to 1.5, and xai-sdk 1.21.0 has it"),
        (r'aspect_ratio: "(21:9|5:2)" is not one of', "docs.x.ai has them since August, as three public clients say"),
    ),
}


def find_validators(slug: str, path: str, body: Body) -> list[tuple[Description, Validator]]:
    """The descriptions that know this endpoint of the provider, each with the validator of the body."""
    found = ((description, description.find(path, body)) for description in descriptions().get(slug, ()))
    return [(description, validator) for description, validator in found if validator]


def breaches(slug: str, validator: Validator, body: Any) -> Iterator[tuple[str, str | None]]:
    """Where a body does not fit a description: the place and what is wrong, and the row of NARROWER that allows it."""
    for error in validator.errors(body):
        place = "/".join(map(str, error.instance_path))
        breach = f"{place}: {error.message}" if place else error.message
        rows = (pattern for pattern, _ in NARROWER.get(slug, ()) if re.search(pattern, breach))
        yield breach, next(rows, None)


def first_breach(slug: str, path: str, fields: Body, *, is_form: bool) -> str | None:
    """Why the provider would refuse a body. Values in forms are texts, so their types are not compared."""
    body = {name: "file" if isinstance(value, bytes) else value for name, value in fields.items()}
    if is_form:
        body = {name: _number_or_text(value) for name, value in body.items()}
    for _, validator in find_validators(slug, path, body):
        for breach, allowed_by in breaches(slug, validator, body):
            if not allowed_by and not (is_form and re.search("is not of type|is not valid under any", breach)):
                return breach
    return None


def _number_or_text(value: Any) -> Any:
    return float(value) if isinstance(value, str) and re.fullmatch(r"-?\d+(\.\d+)?", value) else value


# ---------------------------------------------------------------------------------------------- for docs/providers.md

RECORD = HERE / "compared.json"


def compared(providers: Iterable[Provider]) -> dict[str, dict[str, list[str]]]:
    """By provider: what its requests are compared with, and the models whose requests nothing describes."""
    return {provider.slug: _compared(provider) for provider in providers if not provider.local and _media(provider)}


def _media(provider: Provider) -> list[Model]:
    return [model for model in provider.models if model.op.task not in UNLIKE_IMAGES]


def _compared(provider: Provider) -> dict[str, list[str]]:
    found = [(model, find_validators(provider.slug, *_example(provider, model))) for model in _media(provider)]
    sources = dict.fromkeys(description.source for _, validators in found for description, _ in validators)
    known = {model.id for model, validators in found if validators}
    missing = [model for model, validators in found if not validators]
    names = dict.fromkeys(f"{model.id} ({model.upstream})" if model.id in known else model.id for model in missing)
    return {"compared_with": list(sources), "not_described": list(names)}


def _example(provider: Provider, model: Model) -> tuple[str, Body]:
    sent = next(requests(provider, model))
    return sent.path, sent.body
