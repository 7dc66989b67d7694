"""vLLM on your own machine: the chat models that it serves, under the names that it gives them."""

from penstock.providers.chat_models import DEVELOPER_AS_SYSTEM, any_model, chat_operation
from penstock.providers.openai_compatible import failure_kind
from penstock.providers.spec import Provider, Reply, bearer_if_set


def error_message(reply: Reply) -> str | None:
    """The message of an error response; older versions send it without the `error` object."""
    error = reply.json.get("error") or reply.json
    return str(error["message"])


PROVIDER = Provider(
    slug="vllm",
    name="vLLM",
    docs="https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html",
    base_url="http://127.0.0.1:8000",
    self_hosted=True,
    base_url_env="VLLM_URL",
    auth=bearer_if_set,
    error_message=error_message,
    failure_kind=failure_kind,
    models=any_model("vllm", chat_operation(DEVELOPER_AS_SYSTEM)),
)
