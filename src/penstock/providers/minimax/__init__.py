"""MiniMax: Hailuo videos, speech and music over version 1 of its API, and H3 videos over version 2."""

from penstock.providers.minimax import h3, hailuo, music, speech
from penstock.providers.spec import FailureKind, Provider, Reply, bearer

FAILURE_KINDS: dict[str, FailureKind] = {
    "unprocessable_entity_error": "refused",
    "insufficient_balance_error": "broken",
    "authorized_error": "broken",
    "rate_limit_error": "busy",
    "server_error": "broken",
}


def error_message(reply: Reply) -> str | None:
    return str(reply.json["error"]["message"])


def failure_kind(reply: Reply) -> FailureKind | None:
    return FAILURE_KINDS.get(reply.json["error"]["type"])


PROVIDER = Provider(
    slug="minimax",
    name="MiniMax",
    docs="https://platform.minimax.io/docs",
    base_url="https://api.minimax.io",
    key_env="MINIMAX_API_KEY",
    auth=bearer,
    error_message=error_message,
    failure_kind=failure_kind,
    models=(*h3.MODELS, *hailuo.MODELS, *speech.MODELS, *music.MODELS),
)
