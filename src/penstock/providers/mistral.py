"""Mistral AI: OpenAI's chat with a seed of another name and no patience for fields it does not know."""

from penstock.providers.chats import ONE_LIMIT, chats, heard, talk
from penstock.providers.spec import Provider, Reply, bearer, ignored, renamed

# Its streams end with what was used unasked, and to ask is an unknown field; so is a name on a message.
TALK = talk(
    heard("name", developer="system"),
    ONE_LIMIT,
    renamed("seed", "random_seed"),
    *ignored("user", "stream_options", "logit_bias", "store"),
    finish={b"model_length": b"length"},
)


def error_text(reply: Reply) -> str | None:
    """One sentence, or a list of what was wrong with which field, or a sentence that holds such a list."""
    said = reply.json
    told = said.get("message") or said["detail"]
    told = told["detail"] if isinstance(told, dict) else told
    return told if isinstance(told, str) else "; ".join(f"{one['loc'][-1]}: {one['msg']}" for one in told)


PROVIDER = Provider(
    slug="mistral",
    name="Mistral AI",
    docs="https://docs.mistral.ai/api",
    base_url="https://api.mistral.ai/v1",
    key_env="MISTRAL_API_KEY",
    auth=bearer,
    error_message=error_text,
    models=chats(
        "mistralai",
        "public price table, 2026-11",
        """
        mistral-large-4     0.68  2.09  0.068
        mistral-large-2512  0.5   1.5   0.05
        mistral-medium-3-5  1.5   7.5   0.15
        mistral-small-2603  0.15  0.6   0.015
        ministral-14b-2512  0.2   0.2   0.02
        ministral-8b-2512   0.15  0.15  0.015
        ministral-3b-2512   0.1   0.1   0.01
        codestral-2508      0.3   0.9   0.03
    """,
        TALK,
    ),
)
