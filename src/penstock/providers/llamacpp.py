"""The server of llama.cpp on your own machine: the model it was started with, by any name, or one of its router's."""

from penstock.providers.compatible import ONE_VOICE, error_kind, error_text, talk
from penstock.providers.spec import Kind, Model, Price, Provider, Reply


def kind(reply: Reply) -> Kind | None:
    return "busy" if reply.status == 503 else error_kind(reply)  # it is still loading the model


PROVIDER = Provider(
    slug="llamacpp",
    name="llama.cpp",
    docs="https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md",
    base_url="http://127.0.0.1:8080",
    base_url_env="LLAMACPP_URL",
    auth=lambda key: {"authorization": f"Bearer {key}"} if key else {},  # it asks for one if it was started with one
    error=error_text,
    kind=kind,
    models=(
        Model(
            id="llamacpp/*",
            upstream="*",
            op=talk(ONE_VOICE, send="POST /v1/chat/completions"),
            prices=(Price(unit="token", usd="0", note="your own hardware"),),
        ),
    ),
)
