"""One API in front of every image, video and chat provider, on your own machine."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.client.async_client import AsyncClient
    from penstock.client.client import Client
    from penstock.client.failures import (
        CallFailed,
        GenerationFailed,
        NotConnected,
        NotFinished,
        Refused,
        WebhookRefused,
    )
    from penstock.client.results import Balance, File, Generation, Price
    from penstock.client.webhook import Event, check_webhook

__version__ = "0.1.0"

# What programs import from here, and where it is. Each is imported when it is used: a gateway needs none of them.
_PLACES = {
    "AsyncClient": "async_client",
    "Client": "client",
    **dict.fromkeys(
        ("CallFailed", "GenerationFailed", "NotConnected", "NotFinished", "Refused", "WebhookRefused"), "failures"
    ),
    **dict.fromkeys(("Balance", "File", "Generation", "Price"), "results"),
    **dict.fromkeys(("Event", "check_webhook"), "webhook"),
}

__all__ = [
    "AsyncClient",
    "Balance",
    "CallFailed",
    "Client",
    "Event",
    "File",
    "Generation",
    "GenerationFailed",
    "NotConnected",
    "NotFinished",
    "Price",
    "Refused",
    "WebhookRefused",
    "__version__",
    "check_webhook",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'penstock' has no attribute {name!r}")
    return getattr(import_module(f"penstock.client.{_PLACES[name]}"), name)
