"""Begin a session of the pages with a key, tell who is signed in, and sign out."""

from typing import Any

from penstock.accounts.orgs import get_org
from penstock.api import query
from penstock.api.cookies import cookie_name, set_cookie
from penstock.api.fields import checked_fields
from penstock.api.route import Query
from penstock.errors import InvalidRequest, PermissionDenied
from penstock.fields import field_table, flag_field
from penstock.gateway import Gateway
from penstock.schema import Call, Response
from penstock.values import iso

SESSION_FIELDS = field_table(
    flag_field("keep", "Whether the session outlives the browser, for 30 days.", default=False),
)
END_QUERY = (
    Query(
        name="everywhere",
        type="boolean",
        default=False,
        about="End all sessions of this person, with the person's own keys, or all of this key.",
    ),
)


async def begin_session(gateway: Gateway, call: Call) -> Response:
    """Begin a session that acts through the key of this call, and set its cookie."""
    if call.caller.session_id is not None:
        raise InvalidRequest("A session begins with a key in the Authorization header, not with another session.")
    if gateway.sign_in is not None and not gateway.sign_in.config.key_sign_in:
        raise PermissionDenied("On this gateway people sign in with their company's account; keys are for programs.")
    keep = checked_fields(call.json, SESSION_FIELDS).get("keep", False)
    agent = call.headers.get("user-agent", "")
    new = await gateway.sessions.begin(call.caller, call.address, agent, keep=keep)
    headers = set_cookie(cookie_name(call.base_url), new.token, call.base_url, new.seconds)
    return Response(json=await _record(gateway, call, new.until_ms), headers=headers)


async def retrieve_session(gateway: Gateway, call: Call) -> Response:
    return Response(json=await _record(gateway, call, call.caller.session_until_ms))


async def end_session(gateway: Gateway, call: Call) -> Response:
    """Sign out, and remove the cookie."""
    everywhere = query.read(END_QUERY, call.query)["everywhere"]
    if call.caller.session_id is not None or everywhere:
        await gateway.sessions.end(call.caller, everywhere=everywhere)
        if everywhere and call.caller.user_id is not None:
            gateway.keys.forget_owner(call.caller.user_id)
    return Response(status=204, headers=set_cookie(cookie_name(call.base_url), "", call.base_url, 0))


async def _record(gateway: Gateway, call: Call, until_ms: int | None) -> dict[str, Any]:
    org = await get_org(gateway.store, call.caller.org_id)
    return {
        "object": "session",
        "key": await gateway.keys.get_record(call.caller),
        "org": {"id": org.id, "name": org.name},
        "user": await gateway.users.describe(call.caller),
        "expires_at": None if until_ms is None else iso(until_ms),
    }
