"""Ollama on your own machine: all chat models that it has pulled, by their tags."""

from penstock.providers import openai_compatible
from penstock.providers.chat_models import DEVELOPER_AS_SYSTEM, MAX_TOKENS, any_model, chat_operation
from penstock.providers.spec import FailureKind, Provider, Reply, bearer_if_set, converted, passthrough


def send_nothing(value: object) -> None:
    """None, which is not sent: for a field that Ollama does not have and whose only allowed value is its default."""


CHAT = chat_operation(
    DEVELOPER_AS_SYSTEM,
    MAX_TOKENS,
    converted("tool_choice", to="tool_choice", convert=send_nothing, one_of=("auto",)),
    passthrough("n", one_of=(1,)),
)


def failure_kind(reply: Reply) -> FailureKind | None:
    """As for other servers, but 503 means that its queue is full."""
    return "busy" if reply.status == 503 else openai_compatible.failure_kind(reply)


PROVIDER = Provider(
    slug="ollama",
    name="Ollama",
    docs="https://docs.ollama.com/api/openai-compatibility",
    base_url="http://127.0.0.1:11434",
    self_hosted=True,
    base_url_env="OLLAMA_URL",
    auth=bearer_if_set,
    error_message=openai_compatible.error_message,
    failure_kind=failure_kind,
    models=any_model("ollama", CHAT),
)
