"""What xAI's images and videos share: the reported cost, refusals, and the aspect ratio."""

import re
from collections.abc import Mapping
from typing import Any

from penstock.providers.openai_compatible import error_message
from penstock.providers.reported import number_at
from penstock.providers.spec import LITELLM, FailureKind, Reply, price_list

REFUSAL = re.compile(r"moderation|usage guidelines|SAFETY_CHECK", re.IGNORECASE)
BLOCKED_MESSAGE = "The output did not pass xAI's moderation."
price = price_list(LITELLM)


def cost_usd(response: Mapping[str, Any]) -> str | None:
    """The reported cost in dollars; a dollar has 10^10 ticks."""
    ticks = number_at(response, "usage", "cost_in_usd_ticks")
    return None if ticks is None else str(ticks / 10**10)


def failure_kind(reply: Reply) -> FailureKind | None:
    """A refusal for content has status 400 or 403 and no code, only a message."""
    return "refused" if REFUSAL.search(error_message(reply) or "") else None


def drop_ratio(fields: dict[str, Any]) -> dict[str, Any]:
    """Remove the aspect ratio if there is one image: what is made from it has its ratio."""
    return {name: value for name, value in fields.items() if name != "aspect_ratio" or "image" not in fields}
