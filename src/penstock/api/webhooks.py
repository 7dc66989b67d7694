"""Retrieve the secret that webhook deliveries are signed with."""

from penstock.api.responses import NO_STORE
from penstock.gateway import Gateway
from penstock.schema import Call, Response


async def retrieve_webhook_secret(gateway: Gateway, call: Call) -> Response:
    """Return the secret of the caller's organization; the first call creates it."""
    return Response(json={"key": await gateway.webhooks.get_secret(call.caller.org_id)}, headers=NO_STORE)
