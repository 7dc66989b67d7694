"""vLLM on your own machine: the models that it serves, by the names they were given."""

from penstock.providers.compatible import ONE_VOICE, error_kind, talk
from penstock.providers.spec import Model, Price, Provider, Reply


def error_text(reply: Reply) -> str | None:
    """Servers of last year put their errors into no envelope."""
    told = reply.json.get("error") or reply.json
    return str(told["message"])


PROVIDER = Provider(
    slug="vllm",
    name="vLLM",
    docs="https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html",
    base_url="http://127.0.0.1:8000",
    base_url_env="VLLM_URL",
    auth=lambda key: {"authorization": f"Bearer {key}"} if key else {},  # it asks for one if it was started with one
    error=error_text,
    kind=error_kind,
    models=(
        Model(
            id="vllm/*",
            upstream="*",
            op=talk(ONE_VOICE, send="POST /v1/chat/completions"),
            prices=(Price(unit="token", usd="0", note="your own hardware"),),
        ),
    ),
)
