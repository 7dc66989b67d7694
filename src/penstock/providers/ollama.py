"""Ollama on your own machine: whatever model it has pulled, by its tag."""

from penstock.providers.chats import ONE_LIMIT, ONE_VOICE, served, talk
from penstock.providers.compatible import error_kind, error_text
from penstock.providers.spec import FailureKind, Provider, Reply, converted, passthrough


def unsaid(value: object) -> None:
    """What it does anyway need not be asked for, and cannot be."""


# It takes no wish as to tools, and answers once.
TALK = talk(
    ONE_VOICE,
    ONE_LIMIT,
    converted("tool_choice", "tool_choice", unsaid, one_of=("auto",)),
    passthrough("n", one_of=(1,)),
)


def kind(reply: Reply) -> FailureKind | None:
    return "busy" if reply.status == 503 else error_kind(reply)  # its queue is full


PROVIDER = Provider(
    slug="ollama",
    name="Ollama",
    docs="https://docs.ollama.com/api/openai-compatibility",
    base_url="http://127.0.0.1:11434",
    base_url_env="OLLAMA_URL",
    error_message=error_text,
    failure_kind=kind,
    models=served("ollama", TALK),
)
