"""Groq: open models behind OpenAI's chat; refuses log probabilities and names on messages."""

from dataclasses import replace

from penstock.providers.compatible import CHAT, chats, error_kind, error_text
from penstock.providers.spec import Provider, bearer

TALK = replace(CHAT, settings={"drops": ("logprobs", "top_logprobs")})

PROVIDER = Provider(
    slug="groq",
    name="Groq",
    docs="https://console.groq.com/docs/openai",
    base_url="https://api.groq.com/openai/v1",
    key="GROQ_API_KEY",
    auth=bearer,
    error=error_text,
    kind=error_kind,
    models=chats(
        "groq",
        "list price, public tables of 2026-11",
        (
            ("gpt-oss-120b", "openai/gpt-oss-120b", "0.15", "0.6"),
            ("gpt-oss-20b", "openai/gpt-oss-20b", "0.075", "0.3"),
            ("qwen3.8-27b", "qwen/qwen3.8-27b", "0.8", "4"),
        ),
        TALK,
    ),
)
