"""Which of OpenAI's endpoints the gateway serves, and why not the others: for the documentation and for 404s."""

import re
from typing import Literal, NamedTuple

PREFIX = "/compat/v1"


class OpenAiEndpoint(NamedTuple):
    """One endpoint of OpenAI's API, or a group of them."""

    method: str  # empty: all
    path: str  # without the prefix; everything below it is meant too, if it has no entry of its own
    served: Literal["yes", "partly", "no"]
    remark: str


_NO_STATE = "the gateway stores no conversations, files or jobs of OpenAI's kind"
_SAME_MODEL = "`model` is by default the one that made the earlier video, and must take videos as input"
_OTHER_KINDS = "the gateway makes images, videos, speech, transcripts and chat"

NO_OWN_VOICES = "the gateway stores no samples of voices; there are those of the models and of accounts at vendors"

ENDPOINTS: tuple[OpenAiEndpoint, ...] = (
    OpenAiEndpoint(
        "POST",
        "/chat/completions",
        "yes",
        "whole and streamed, with tools, images, sounds and structured outputs; not stored, so stored "
        "completions cannot be listed",
    ),
    OpenAiEndpoint("", "/chat/completions/{id}", "no", _NO_STATE),
    OpenAiEndpoint(
        "POST",
        "/responses",
        "yes",
        "text, images, function tools, structured outputs, reasoning, streams, and the `image_generation` tool; passed "
        "through to providers that speak it, translated for the others; `item_reference` finds items of the last day; "
        "conversations are not stored, so `previous_response_id` and `background` are refused",
    ),
    OpenAiEndpoint("", "/responses/{id}", "no", _NO_STATE),
    OpenAiEndpoint("POST", "/responses/input_tokens", "no", "a call with `?dryRun=true` says what it costs at most"),
    OpenAiEndpoint("POST", "/responses/compact", "no", "providers compact conversations each in a way of their own"),
    OpenAiEndpoint(
        "GET",
        "/models",
        "yes",
        "list and retrieve, with prices and parameters; models cannot be deleted",
    ),
    OpenAiEndpoint(
        "POST",
        "/images/generations",
        "yes",
        "`response_format` is `url` unless the setting `image_response_format` says otherwise; a stream has partial "
        "images where the provider sends them",
    ),
    OpenAiEndpoint(
        "POST",
        "/images/edits",
        "yes",
        "also upscaling; `size` is 1024x1024 unless the setting `edit_size` is `auto`; no `file_id`",
    ),
    OpenAiEndpoint("POST", "/images/variations", "no", "OpenAI retired its only model for it"),
    OpenAiEndpoint("POST", "/videos", "yes", "with references, webhooks and idempotency keys"),
    OpenAiEndpoint(
        "GET",
        "/videos",
        "yes",
        "list, retrieve, and download as `video`, `thumbnail` or `spritesheet`",
    ),
    OpenAiEndpoint(
        "DELETE",
        "/videos",
        "partly",
        "cancels an unfinished video; a finished one stays: purge it with `DELETE /v1/requests/{id}/payloads`",
    ),
    OpenAiEndpoint("POST", "/videos/{id}/remix", "yes", f"an edit of that video; {_SAME_MODEL}"),
    OpenAiEndpoint("POST", "/videos/edits", "yes", f"of a file, a URL or an earlier video; {_SAME_MODEL}"),
    OpenAiEndpoint("POST", "/videos/extensions", "yes", f"of a file, a URL or an earlier video; {_SAME_MODEL}"),
    OpenAiEndpoint("", "/videos/characters", "no", "send images as `input_reference` with each video"),
    OpenAiEndpoint("POST", "/completions", "no", "the old text completions; use chat"),
    OpenAiEndpoint("", "/embeddings", "no", _OTHER_KINDS),
    OpenAiEndpoint(
        "",
        "/moderations",
        "no",
        "providers moderate themselves; a refusal is the error CONTENT_POLICY_VIOLATION",
    ),
    OpenAiEndpoint(
        "POST",
        "/audio/speech",
        "yes",
        "bytes or events while they are made; all formats, speeds and voice names on every model",
    ),
    OpenAiEndpoint(
        "POST",
        "/audio/transcriptions",
        "yes",
        "every response format on every model that gives the times for it; events; files of 60 MiB and four hours",
    ),
    OpenAiEndpoint("POST", "/audio/translations", "yes", "into English, by models that translate"),
    OpenAiEndpoint(
        "GET",
        "/audio/voices",
        "yes",
        "voices of models and of accounts at vendors, and which of OpenAI's they speak for",
    ),
    OpenAiEndpoint("POST", "/audio/voices", "no", NO_OWN_VOICES),
    OpenAiEndpoint("", "/audio/voices/{id}", "no", NO_OWN_VOICES),
    OpenAiEndpoint("", "/audio/voice_consents", "no", NO_OWN_VOICES),
    OpenAiEndpoint("", "/realtime", "no", _OTHER_KINDS),
    OpenAiEndpoint("", "/live", "no", _OTHER_KINDS),
    OpenAiEndpoint("", "/files", "partly", "of the purpose `batch`; kept for 30 days"),
    OpenAiEndpoint("", "/uploads", "no", _NO_STATE),
    OpenAiEndpoint(
        "",
        "/batches",
        "yes",
        "chat, responses, images, edits and videos; a file with a faulty line is refused at once; chats cost half "
        "where the provider has batches, other rows what single calls cost",
    ),
    OpenAiEndpoint("", "/fine_tuning", "no", _NO_STATE),
    OpenAiEndpoint("", "/vector_stores", "no", _NO_STATE),
    OpenAiEndpoint("", "/conversations", "no", _NO_STATE),
    OpenAiEndpoint("", "/assistants", "no", "OpenAI replaced it by responses"),
    OpenAiEndpoint("", "/threads", "no", "OpenAI replaced it by responses"),
    OpenAiEndpoint("", "/evals", "no", _NO_STATE),
    OpenAiEndpoint("", "/containers", "no", _NO_STATE),
    OpenAiEndpoint("", "/skills", "no", _NO_STATE),
    OpenAiEndpoint("", "/organization", "no", "the native API under `/v1` has keys, requests and the balance"),
)

_SERVED = {endpoint.path for endpoint in ENDPOINTS if endpoint.served != "no"}
_NOT_SERVED = {
    endpoint.path: endpoint.remark
    for endpoint in ENDPOINTS
    if endpoint.served == "no" and "{" not in endpoint.path and endpoint.path not in _SERVED
}
_NOT_SERVED_OF_ONE = tuple(
    (re.compile(endpoint.path.replace("{id}", "[^/]+") + "(/.*)?"), endpoint.path, endpoint.remark)
    for endpoint in ENDPOINTS
    if endpoint.served == "no" and "{" in endpoint.path
)
_NOT_SERVED |= {"/images/variations": "OpenAI retired its only model for it", "/completions": "use `/chat/completions`"}


def is_known_and_not_served(path: str) -> bool:
    """Whether a path is one of OpenAI's, under the compatible API, that no route may claim."""
    return path.startswith(PREFIX) and path.removeprefix(PREFIX) in _NOT_SERVED


def explain_missing(path: str, base_url: str) -> str:
    """The message for a path that does not exist, with the path that was probably meant."""
    bare = path.rstrip("/")
    for prefix in ("/v1", "/openai/v1", "/api/v1", "", "/compat"):
        resource = bare.removeprefix(prefix) if bare.startswith(prefix) else ""
        if not path.startswith(PREFIX) and any(_is_below(resource, endpoint.path) for endpoint in ENDPOINTS):
            return f"There is nothing at this path. The OpenAI-compatible API has the base URL {base_url}{PREFIX}."
    if bare != path and bare:
        return "There is nothing at this path. Leave out the slash at its end."
    resource = path.removeprefix(PREFIX)
    for name, remark in _NOT_SERVED.items():
        if path.startswith(PREFIX) and _is_below(resource, name):
            return f"This gateway does not serve `{name.removeprefix('/')}`: {remark}."
    for pattern, name, remark in _NOT_SERVED_OF_ONE:
        if path.startswith(PREFIX) and pattern.fullmatch(resource):
            return f"This gateway does not serve `{name.removeprefix('/')}`: {remark}."
    return "There is nothing at this path."


def explain_method(method: str, path: str) -> str:
    """Why a path that exists does not accept a method that it has at OpenAI; empty for any other."""
    resource = path.removeprefix(PREFIX)
    found = (row.remark for row in ENDPOINTS if (row.method, row.path, row.served) == (method, resource, "no"))
    remark = next(found, "")
    return f" {remark[0].upper()}{remark[1:]}." if remark else ""


def _is_below(path: str, top: str) -> bool:
    return path == top or path.startswith(f"{top}/")
