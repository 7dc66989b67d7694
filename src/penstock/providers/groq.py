"""Groq: open models behind OpenAI's chat, under the names that their makers have at the router."""

from penstock.providers.chats import chats, heard, talk
from penstock.providers.compatible import error_kind, error_text
from penstock.providers.spec import Provider, bearer, refused, renamed

# It answers 400 to any of these, and to names on messages.
TALK = talk(
    heard("name"), renamed("max_tokens", "max_completion_tokens"), *refused("logprobs", "top_logprobs", "logit_bias")
)

PROVIDER = Provider(
    slug="groq",
    name="Groq",
    docs="https://console.groq.com/docs/openai",
    base_url="https://api.groq.com/openai/v1",
    key_env="GROQ_API_KEY",
    auth=bearer,
    error_message=error_text,
    failure_kind=error_kind,
    models=chats(
        "groq",
        "public price table, 2026-11",
        """
        openai/gpt-oss-120b            0.15   0.6  0.075
        openai/gpt-oss-20b             0.075  0.3  0.0375
        openai/gpt-oss-safeguard-20b   0.075  0.3  0.037
        qwen/qwen3.8-27b               0.8    4
    """,
        TALK,
    ),
)
