"""What OpenRouter's pictures and films have in common: the cost it reports, and the form of pictures that go in."""

from typing import Any

from penstock.providers.convert import data_uri
from penstock.providers.spec import FailureKind, Reply, price_list
from penstock.values import InputImage

usd = price_list("OpenRouter's catalogue, 2026-08; what is reported is charged")


def cost(answer: dict[str, Any]) -> str | None:
    usd = (answer.get("usage") or {}).get("cost")
    return None if usd is None else str(usd)


def error_text(reply: Reply) -> str | None:
    """Of a maker's error only the maker's own words are of use."""
    error = reply.json["error"]
    raw = (error.get("metadata") or {}).get("raw")
    return f"{error['message']}: {raw}" if isinstance(raw, str) else error["message"]


def error_kind(reply: Reply) -> FailureKind | None:
    told = reply.json["error"].get("metadata") or {}
    unfit = told.get("error_type") in ("content_policy_violation", "refusal") or told.get("reasons")
    return "refused" if unfit else None


def picture(reference: InputImage) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": data_uri(reference)}}
