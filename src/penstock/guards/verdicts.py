"""Ask a service whether a call may go on: a signed POST, whose answer is a verdict."""

from base64 import b64encode
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from penstock.clock import Clock
from penstock.guards.configured import Service
from penstock.net.client import HttpClient
from penstock.net.errors import MaybeSent, NotSent
from penstock.providers.spec import HttpRequest
from penstock.values import InputFile, OrgId
from penstock.webhooks.events import OPERATOR, RecentSigners

_MAX_ANSWER_BYTES = 64 * 1024
_MAX_PROMPT_CHARACTERS = 100_000
MAX_IMAGE_BYTES = 1024 * 1024
_MAX_IMAGES = 4


class GuardFailed(Exception):
    """The service gave no verdict; the message says what happened."""


class Asked(NamedTuple):
    """The call that a guard is asked about, or whose outputs."""

    call_id: str
    org_id: OrgId
    key_id: str


class Verdict(msgspec.Struct, frozen=True):
    """What a service answers."""

    verdict: Literal["pass", "refuse", "flag"]
    reason: str = ""


async def ask(
    client: HttpClient, signers: RecentSigners, clock: Clock, service: Service, question: dict[str, Any], call_id: str
) -> Verdict:
    """Send a question and return the verdict. Raises GuardFailed."""
    body = msgspec.json.encode(question)
    timestamp = clock.now_ms() // 1000
    signed = [signer.sign(call_id, timestamp, body) for signer in await signers.get(OPERATOR)]
    headers = {
        "content-type": "application/json",
        "webhook-id": call_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signed),
    }
    request = HttpRequest("POST", service.url, headers, body)
    try:
        reply = await client.send(request, timeout_seconds=service.timeout_seconds, max_bytes=_MAX_ANSWER_BYTES)
    except TimeoutError:
        raise GuardFailed(f"it did not answer within {service.timeout_seconds:g} seconds") from None
    except (NotSent, MaybeSent) as problem:
        raise GuardFailed(str(problem)) from None
    if reply.status != 200:
        raise GuardFailed(f"it answered with status {reply.status}")
    try:
        return msgspec.json.decode(bytes(reply.body), type=Verdict)
    except msgspec.DecodeError:
        raise GuardFailed("its answer is not a verdict") from None


def describe(kind: str, model: str, prompt: str, labels: dict[str, str], user: str | None) -> dict[str, Any]:
    """The question about a call, without its images."""
    return {
        "when": "input",
        "kind": kind,
        "model": model,
        "prompt": prompt[:_MAX_PROMPT_CHARACTERS],
        "is_prompt_whole": len(prompt) <= _MAX_PROMPT_CHARACTERS,
        "labels": labels,
        "user": user,
    }


def describe_text(text: str) -> dict[str, Any]:
    """What the question about an output says of a text that was written."""
    return {
        "when": "output",
        "text": text[:_MAX_PROMPT_CHARACTERS],
        "is_text_whole": len(text) <= _MAX_PROMPT_CHARACTERS,
    }


def encoded_images(inputs: Sequence[InputFile]) -> list[dict[str, str]]:
    """Input images that are small enough to be sent."""
    images = [each for each in inputs if each.content_type.startswith("image/") and len(each.data) <= MAX_IMAGE_BYTES]
    return [
        {"content_type": image.content_type, "data": b64encode(image.data).decode()} for image in images[:_MAX_IMAGES]
    ]
