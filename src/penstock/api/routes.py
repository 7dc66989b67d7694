"""Every path of the API on one screen."""

from functools import cache

import msgspec

from penstock.api import account, files, health, models, openapi
from penstock.api.account import KEY_FIELDS, KEYS_QUERY, REQUESTS_QUERY
from penstock.api.models import MODELS_QUERY
from penstock.api.spec import Route
from penstock.gateway import Gateway
from penstock.schema import Answer, Call


async def describe(gateway: Gateway, call: Call) -> Answer:
    """The OpenAPI document of the rows below."""
    return Answer(body=_document())


# fmt: off
ROUTES: tuple[Route, ...] = (
    # The compatible API
    Route("GET", "/compat/v1/models", models.list_models, "List models", query=MODELS_QUERY, gives="ModelList"),
    Route("GET", "/compat/v1/models/{model:path}", models.retrieve_model, "Retrieve a model",
          query=MODELS_QUERY, gives="Model"),

    # The native account API
    Route("GET", "/v1/requests", account.list_requests, "List request records",
          query=REQUESTS_QUERY, gives="RequestList"),
    Route("GET", "/v1/requests/{request_id}", account.retrieve_request, "Retrieve a request record", gives="Request"),
    Route("GET", "/v1/keys", account.list_keys, "List keys", query=KEYS_QUERY, gives="KeyList"),
    Route("POST", "/v1/keys", account.create_key, "Create a key",
          access="admin", takes="json", fields=KEY_FIELDS, gives="NewKey"),
    Route("DELETE", "/v1/keys/{key_id}", account.revoke_key, "Revoke a key", access="admin", gives="Key"),
    Route("GET", "/v1/balance", account.balance, "Read the balance", gives="Balance"),
    Route("GET", "/v1/webhooks/secret", account.webhook_secret, "Read the webhook secret", gives="WebhookSecret"),

    # Files, by signed address
    Route("GET", "/m/{media_id}", files.media, "Download a file", access="signed", query=files.FILE_QUERY, gives="file"),

    # The process itself
    Route("GET", "/healthz", health.alive, "Whether the process lives", access="open", gives="Health"),
    Route("GET", "/readyz", health.ready, "Whether it can take calls", access="open", gives="Health"),
    Route("GET", "/openapi.json", describe, "This document", access="open", gives="Document"),
)
# fmt: on


@cache
def _document() -> bytes:
    return msgspec.json.encode(openapi.document(ROUTES))
