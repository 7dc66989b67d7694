"""Invite people, list open invitations, and take them back."""

from urllib.parse import quote

from penstock.accounts.key_records import OPERATOR
from penstock.api.fields import checked_fields
from penstock.api.paging import path_id
from penstock.api.responses import NO_STORE
from penstock.errors import InvalidRequest, PermissionDenied
from penstock.fields import field_table, text_field
from penstock.gateway import Gateway
from penstock.people.configured import EVERYWHERE
from penstock.people.users import ROLES
from penstock.schema import Call, Response
from penstock.values import OrgId

INVITATION_FIELDS = field_table(
    text_field("email", "The address that the issuer must have verified.", required=True, max_length=320),
    text_field("role", "What the person may do.", required=True, one_of=ROLES),
    text_field("org_id", "The organization; `*` for the role `operator`. By default that of the caller."),
)


async def invite(gateway: Gateway, call: Call) -> Response:
    """Invite somebody. No mail is sent: the response has the link, and no other one ever does."""
    if gateway.sign_in is None:
        raise InvalidRequest(
            "Invitations need an account to sign in with: penstock.toml has no table `oidc` or `proxy_sign_in`."
        )
    fields = checked_fields(call.json, INVITATION_FIELDS)
    org_id = OrgId(fields.get("org_id") or call.caller.org_id)
    if OPERATOR not in call.caller.scopes and (org_id != call.caller.org_id or fields["role"] == "operator"):
        raise PermissionDenied("Only operators invite people into other organizations.")
    by = call.caller.user_id or call.caller.key_id
    token, record = await gateway.invitations.invite(org_id, fields["email"], fields["role"], by)
    url = f"{call.base_url}/auth/login?invitation={quote(token)}"
    return Response(json={**record, "url": url}, headers=NO_STORE)


async def list_invitations(gateway: Gateway, call: Call) -> Response:
    return Response(json={"object": "list", "data": await gateway.invitations.list_records(_readable(call))})


async def withdraw_invitation(gateway: Gateway, call: Call) -> Response:
    await gateway.invitations.withdraw(_readable(call), path_id(call, "invitation_id", "inv", "invitation"))
    return Response(status=204)


def _readable(call: Call) -> OrgId:
    return EVERYWHERE if OPERATOR in call.caller.scopes else call.caller.org_id
