"""What OpenRouter's images and videos share: errors, the reported cost, and the format of input images."""

from collections.abc import Mapping
from typing import Any

from penstock.providers.convert import data_uri
from penstock.providers.reported import number_at, value_at
from penstock.providers.spec import FailureKind, Reply, Source, price_list
from penstock.values import InputFile

price = price_list(Source("OpenRouter's catalogue; what is reported is charged", "2026-08"))


def cost_usd(response: Mapping[str, Any]) -> str | None:
    """The reported cost in dollars. If OpenRouter used the operator's own key of the provider behind it, this is its
    fee and what that provider bills the operator.
    """
    cost = number_at(response, "usage", "cost")
    if cost is None:
        return None
    is_byok = value_at(response, "usage", "is_byok") is True
    billed = number_at(response, "usage", "cost_details", "upstream_inference_cost") if is_byok else None
    return f"{cost + (billed or 0):f}"


def error_message(reply: Reply) -> str | None:
    """The message of an error response, with that of the provider behind OpenRouter if there is one."""
    error = reply.json["error"]
    raw = (error.get("metadata") or {}).get("raw")
    return f"{error['message']}: {raw}" if isinstance(raw, str) else error["message"]


def failure_kind(reply: Reply) -> FailureKind | None:
    metadata = reply.json["error"].get("metadata") or {}
    is_refused = metadata.get("error_type") in ("content_policy_violation", "refusal") or metadata.get("reasons")
    return "refused" if is_refused else None


def image_object(image: InputFile) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": data_uri(image)}}
