"""What xAI's pictures and films have in common: cost, moderation and the form of pictures that go in."""

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from penstock.providers.convert import data_uri
from penstock.providers.compatible import error_text
from penstock.providers.spec import FailureKind, Reply, price_list
from penstock.values import InputImage

MODERATED = re.compile(r"moderation|usage guidelines|SAFETY_CHECK", re.IGNORECASE)
BLOCKED = "What was made did not pass xAI's moderation."
NOTE = "public price table, 2026-11"
usd = price_list(NOTE)


def cost(answer: dict[str, Any]) -> str | None:
    """A dollar has 10^10 ticks."""
    ticks = (answer.get("usage") or {}).get("cost_in_usd_ticks")
    return None if ticks is None else str(Decimal(ticks) / 10**10)


def error_kind(reply: Reply) -> FailureKind | None:
    """Content is refused with 400 or 403, in words only."""
    return "refused" if MODERATED.search(error_text(reply) or "") else None


def pictured(references: Sequence[InputImage]) -> tuple[Any, Any]:
    """One picture, or several."""
    urls = [{"type": "image_url", "url": data_uri(one)} for one in references]
    return (urls[0], None) if len(urls) == 1 else (None, urls)
