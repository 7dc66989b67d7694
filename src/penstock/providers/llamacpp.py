"""The llama.cpp server on your own machine: the model it was started with, under any name, or its router's models."""

from penstock.providers import openai_compatible
from penstock.providers.chat_models import DEVELOPER_AS_SYSTEM, any_model, chat_operation
from penstock.providers.spec import FailureKind, Provider, Reply, bearer_if_set


def failure_kind(reply: Reply) -> FailureKind | None:
    """As for other servers, but 503 means that it is still loading the model, and one 500 is the caller's mistake."""
    if reply.status == 503:
        return "busy"
    if reply.status == 500 and "input is not supported" in (openai_compatible.error_message(reply) or ""):
        return "rejected"  # an image or audio, sent to a model that has no part for it
    return openai_compatible.failure_kind(reply)


PROVIDER = Provider(
    slug="llamacpp",
    name="llama.cpp",
    docs="https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md",
    base_url="http://127.0.0.1:8080",
    self_hosted=True,
    base_url_env="LLAMACPP_URL",
    auth=bearer_if_set,
    error_message=openai_compatible.error_message,
    failure_kind=failure_kind,
    models=any_model("llamacpp", chat_operation(DEVELOPER_AS_SYSTEM)),
)
