"""The page of all endpoints, from the OpenAPI document and its examples, and the page of all errors."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from penstock import errors
from penstock.api.openapi.document import build_document
from penstock.api.openapi.operations import TAGS
from penstock.api.routes import ROUTES

# What to do about each error.
REMEDIES: Mapping[str, str] = {
    "ALL_PROVIDERS_EXHAUSTED": "Every provider of the model failed, or its only one. The message has the last error, "
    "and the record of the request has every attempt. Repeat the call if `x-should-retry` is `true`; an operator looks "
    "at `GET /v1/providers`.",
    "AUTHENTICATION_FAILED": "Send `Authorization: Bearer pk_…`. A key ends when it is revoked or expires, and "
    "belongs to one "
    "installation. [A lost key](faq.md#i-lost-the-key-that-was-printed-at-the-first-start) can be replaced.",
    "CANCELLED": "Nothing: somebody cancelled the video, and it is free.",
    "CONFLICT": "The message says what is in the way, such as a request that still runs. Wait for that, then repeat "
    "the call.",
    "CONTENT_POLICY_VIOLATION": "Change the prompt or the images. Other providers are not asked, and nothing is "
    "charged, unless the message says that a [guard](guards.md#what-was-made) refused what was made.",
    "DELIVERY_FAILED": "The [bucket](delivery.md) could not be written in time, and the call requires the copy. The "
    "output was made and is charged. `POST /v1/destinations/{id}/check` says what is wrong with the bucket.",
    "HEADERS_TOO_LARGE": "Send fewer or shorter headers; cookies of the same host are the usual reason.",
    "IDEMPOTENCY_COMPLETED": "The chat or change was made when it was first sent with this idempotency key, and its "
    "response is not stored. The message has its id and cost. Send it with a new key if you need it again; an operator "
    'stores responses with `payloads = "all"`.',
    "IDEMPOTENCY_IN_PROGRESS": "The call that was first sent with this idempotency key still runs. Repeat the call "
    "after the seconds in `retry-after`.",
    "INSUFFICIENT_BALANCE": "The highest possible cost must be available while a call runs. Lower `max_tokens`, `n` or "
    "`seconds`, wait for running calls, or let an operator run `penstock credit add`. The limits of a key, such as "
    "`usd_per_day`, have another error, `RATE_LIMITED`.",
    "INTERNAL_ERROR": "A defect of the gateway. The log has the details under the id of the response's "
    "`x-request-id`. Nothing "
    "is charged.",
    "INVALID_REQUEST": "The message names the field, in `param` too, and what is allowed. "
    "`GET /compat/v1/models/{id}?schema=true` has every parameter of a model.",
    "METHOD_NOT_ALLOWED": "The header `allow` lists the methods of this path.",
    "MODEL_DISABLED": "An operator has switched the model off in `penstock.toml`.",
    "MODEL_NOT_FOUND": "`GET /compat/v1/models` lists what can be called. The message names similar models, or the "
    "variable whose credential is missing.",
    "NOT_FOUND": "The path or the id does not exist, or belongs to another organization. Paths of OpenAI that are "
    "not served "
    "are answered with this error as well.",
    "PAYLOAD_TOO_LARGE": "The message has the limit, which is one of the settings `json_bytes`, `form_bytes` and "
    "`image_bytes`. Upload images as a form instead of base64 in JSON, or give their URLs.",
    "PERMISSION_DENIED": "The message says whether the key lacks a [scope](operations.md#scopes-of-keys), may only use "
    "other [models](account.md#keys), or whether the URL has expired.",
    "PROVENANCE_UNAVAILABLE": "The output was made, but could not get the "
    "[Content Credentials](provenance.md) that the call requires. The message has the status; nothing is charged.",
    "RATE_LIMITED": "Wait as long as `retry-after` says. The message names a limit of the key, the organization or the "
    "address; if it names none of them, it is what the provider said.",
    "RECORDING_NOT_FOUND": "No recording matches in the mode `replay-or-error`. [Record](replay.md) the call first, "
    "or match "
    "fewer fields.",
    "REQUEST_TIMEOUT": "The body arrived too slowly. Check the connection, and what a proxy does with uploads.",
    "STORAGE_QUOTA_EXCEEDED": "Delete recordings, purge requests, or let an operator raise `storage_bytes_per_org`.",
    "STORAGE_UNAVAILABLE": "Repeat the call later. An operator looks at `/readyz`, the disk and the database.",
    "UNAVAILABLE": "Repeat the call at once: another process takes it. If it lasts, the gateway is stopping, or has "
    "too many "
    "connections.",
    "UNPROCESSABLE_REQUEST": "The provider does not take a value that the gateway does not know to be wrong. Its own "
    "words are "
    "in the message.",
    "UNSUPPORTED_MEDIA_TYPE": "Send `Content-Type: application/json`, or `multipart/form-data` where files can be "
    "sent.",
    "UPSTREAM_ERROR": "The call named the provider, or another one must not be tried because this one may have made "
    "something. Repeat the call if `x-should-retry` is `true`. `penstock providers check` finds bad credentials.",
    "UPSTREAM_OUTCOME_UNKNOWN": "The call to the provider was sent and not answered: the connection broke, it took too "
    "long, or the gateway crashed meanwhile. The video is free, and not repeated: start it again if you want it. Its "
    "operator may find it in the provider's own list.",
    "UPSTREAM_TIMEOUT": "If the message has the path of an image, its generation goes on: retrieve it there. "
    "`image_wait_seconds` is how long a caller may wait; `Prefer: respond-async` waits not at all. Otherwise the "
    "provider took too long, and nothing is charged.",
}


def errors_page(note: str) -> str:
    kinds = sorted(errors.problem_kinds(), key=lambda kind: (kind.status, kind.code))
    rows = (
        (f"[`{kind.code}`](#{kind.code.lower()})", str(kind.status), f"`{kind.type}`", meaning(kind)) for kind in kinds
    )
    codes = sorted(kind.code for kind in kinds)
    sections = "\n\n".join(f"### {code}\n\n{REMEDIES[code]}" for code in codes)
    return f"""# Errors

{note}

Whatever goes wrong, on whatever path, the body is `{{"error": {{"message", "type", "code"}}}}`, with `param` when one
field is to blame. Programs should look at `code`; the words of `message` are for people and may change.

Responses of calls that may cost money have a header `x-should-retry`: `true` only if the same call can be repeated
without paying twice. OpenAI's clients obey it. `x-request-id` is the id under which the call is recorded.

{table(("code", "status", "type", "meaning"), rows)}

## What to do

{sections}
"""


def meaning(kind: type[errors.Problem]) -> str:
    """What the class says."""
    return " ".join(kind.__dict__["__doc__"].split())


# ----------------------------------------------------------------------------------------------------------- endpoints


def endpoints_page(note: str) -> str:
    """Every operation with its parameters, a call and the response that a gateway gave."""
    document = build_document(ROUTES)
    operations = [
        (method.upper(), path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    parts = []
    for tag, about in TAGS.items():
        of_tag = [each for each in operations if each[2].get("tags") == [tag]]
        parts.append(f"## {tag}\n\n{about}")
        parts += ["\n\n".join(section(*each)) for each in of_tag]
    sections = "\n\n".join(parts)
    return f"""# Endpoints

{note}

Every call and response here was made with a real gateway and its built-in models; ids, times and sizes were replaced
afterwards. `$PENSTOCK_URL` is the URL of the gateway, `$PENSTOCK_KEY` a key. Long lists are cut. The parameters of each
model are on the page of its [provider](providers.md); errors have [a page of their own](errors.md). A running gateway
has the same with all fields of the responses at `/docs/api`.

{sections}
"""


def section(method: str, path: str, operation: Mapping[str, Any]) -> Iterator[str]:
    yield f"### {method} {path}"
    yield operation["description"]
    if rows := [parameter_row(row) for row in operation["parameters"]]:
        yield table(("parameter", "in", "values", "meaning"), rows)
    if fields := body_rows(operation):
        yield table(("field", "values", "meaning"), fields)
    yield f"```sh\n{operation['x-codeSamples'][0]['source']}\n```"
    for status, response in operation["responses"].items():
        example = response.get("content", {}).get("application/json", {}).get("example")
        if example is not None and int(status) < 300:
            yield f"Status {status}:"
            yield f"```json\n{json.dumps(example, indent=2, ensure_ascii=False)}\n```"


def parameter_row(row: Mapping[str, Any]) -> tuple[str, ...]:
    return f"`{row['name']}`", row["in"], values(row["schema"]), row["description"]


def body_rows(operation: Mapping[str, Any]) -> list[tuple[str, ...]]:
    content = operation.get("requestBody", {}).get("content", {})
    schemas = [each["schema"] for each in content.values()]
    return [
        (f"`{name}`" + (" (required)" if name in schema["required"] else ""), values(field), field["description"])
        for schema in schemas[:1]
        for name, field in schema["properties"].items()
    ]


def values(schema: Mapping[str, Any]) -> str:
    """What a field takes, in words."""
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"] if value is not None)
    types = schema.get("type") or "see the reference"
    said = " or ".join(each for each in ([types] if isinstance(types, str) else types) if each != "null")
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None or high is not None:
        said += f", {low if low is not None else '…'} to {high if high is not None else '…'}"
    default = schema.get("default")
    if default is None:
        return said
    return f"{said}; `{default if isinstance(default, str) else json.dumps(default)}` by default"


def table(heading: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [heading, tuple("---" for _ in heading), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
