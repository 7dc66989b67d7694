"""The server of llama.cpp on your own machine: the model it was started with, by any name, or one of its router's."""

from penstock.providers.chats import ONE_VOICE, served, talk
from penstock.providers.compatible import error_kind, error_text
from penstock.providers.spec import FailureKind, Provider, Reply, bearer_if_set


def kind(reply: Reply) -> FailureKind | None:
    return "busy" if reply.status == 503 else error_kind(reply)  # it is still loading the model


PROVIDER = Provider(
    slug="llamacpp",
    name="llama.cpp",
    docs="https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md",
    base_url="http://127.0.0.1:8080",
    base_url_env="LLAMACPP_URL",
    auth=bearer_if_set,
    error_message=error_text,
    failure_kind=kind,
    models=served("llamacpp", talk(ONE_VOICE)),
)
