"""Microsoft Azure: GPT images and chat of Azure OpenAI, and the images of AI Foundry, for a resource of your own.

The base URL names the resource: `https://NAME.services.ai.azure.com`, or `https://NAME.openai.azure.com` if it has only
OpenAI's models. The credential is a key of the resource, or a token of Entra ID. A deployment has the name of its model
here; for another name, add a model with `like`.
"""

from collections.abc import Mapping

from penstock.providers import openai_compatible
from penstock.providers.azure import foundry, openai
from penstock.providers.spec import FailureKind, Provider, Reply, bearer

REFUSAL_CODES = ("contentFilter", "ResponsibleAIPolicyViolation", "ContentPolicyViolation")


def auth(key: str) -> Mapping[str, str]:
    """The header for a key, or for a token, which is a JWT."""
    return bearer(key) if key.startswith("eyJ") else {"api-key": key}


def failure_kind(reply: Reply) -> FailureKind | None:
    """As for OpenAI, with codes of Azure's own; a deployment that is missing says nothing about the request."""
    error = reply.json["error"]
    inner = error.get("innererror") or error.get("inner_error") or {}
    if {error.get("code"), inner.get("code")} & set(REFUSAL_CODES):
        return "refused"
    return "broken" if reply.status == 404 else openai_compatible.failure_kind(reply)


PROVIDER = Provider(
    slug="azure",
    name="Microsoft Azure",
    docs="https://learn.microsoft.com/azure/foundry",
    base_url="https://NAME.services.ai.azure.com",
    base_url_env="AZURE_OPENAI_ENDPOINT",
    key_env="AZURE_OPENAI_API_KEY",
    auth=auth,
    error_message=openai_compatible.error_message,
    failure_kind=failure_kind,
    models=(*openai.MODELS, *foundry.MODELS),
)
