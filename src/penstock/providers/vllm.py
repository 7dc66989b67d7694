"""vLLM on your own machine: the models that it serves, by the names they were given."""

from penstock.providers.chats import ONE_VOICE, served, talk
from penstock.providers.compatible import error_kind
from penstock.providers.spec import Provider, Reply, bearer_if_set


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
    auth=bearer_if_set,
    error_message=error_text,
    failure_kind=error_kind,
    models=served("vllm", talk(ONE_VOICE)),
)
