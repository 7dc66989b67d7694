"""Retrieve the balance."""

from penstock.gateway import Gateway
from penstock.schema import Call, Response


async def retrieve_balance(gateway: Gateway, call: Call) -> Response:
    return Response(json=await gateway.balances.get(call.caller.org_id))
