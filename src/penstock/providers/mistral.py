"""Mistral AI: OpenAI's chat with a seed of another name and no room for unknown fields."""

from dataclasses import replace

from penstock.providers.compatible import CHAT, chats
from penstock.providers.spec import Provider, Reply, bearer

TALK = replace(
    CHAT,
    settings={
        "renames": {"seed": "random_seed"},
        "drops": ("user", "logprobs", "top_logprobs", "stream_options"),
        "reports_usage": False,  # its streams end with usage unasked, and asking is an unknown field
    },
)


def error_text(reply: Reply) -> str | None:
    """Either one sentence or a list of what was wrong with which field."""
    told = reply.json.get("message") or reply.json["detail"]
    return told if isinstance(told, str) else "; ".join(one["msg"] for one in told)


PROVIDER = Provider(
    slug="mistral",
    name="Mistral AI",
    docs="https://docs.mistral.ai/api",
    base_url="https://api.mistral.ai/v1",
    key="MISTRAL_API_KEY",
    auth=bearer,
    error=error_text,
    models=chats(
        "mistralai",
        "list price, public tables of 2026-11",
        (
            ("mistral-large-4-0", "mistral-large-4-0", "0.68", "2.09"),
            ("mistral-large-latest", "mistral-large-latest", "0.5", "1.5"),
            ("mistral-medium-latest", "mistral-medium-latest", "1.5", "7.5"),
            ("mistral-small-latest", "mistral-small-latest", "0.15", "0.6"),
            ("ministral-8b-latest", "ministral-8b-latest", "0.15", "0.15"),
            ("mistral-code-latest", "mistral-code-latest", "0.3", "0.9"),
        ),
        TALK,
    ),
)
