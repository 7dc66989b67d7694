"""List people, and change what they may do."""

from penstock.accounts.key_records import OPERATOR
from penstock.api.fields import checked_fields
from penstock.api.paging import path_id
from penstock.errors import InvalidRequest, NotFound, PermissionDenied
from penstock.fields import field_table, text_field
from penstock.gateway import Gateway
from penstock.people.users import ROLES, STATUSES
from penstock.schema import Call, Response
from penstock.values import OrgId

USER_FIELDS = field_table(
    text_field("role", "What the person may do in the organization; null for nothing.", one_of=ROLES),
    text_field("org_id", "The organization; `*` for the role `operator`. By default that of the caller."),
    text_field("status", "`deactivated` ends all sessions and own keys; for operators.", one_of=STATUSES),
)


async def list_users(gateway: Gateway, call: Call) -> Response:
    """Return the people of the organization and those without a role; for operators everybody."""
    whose = None if OPERATOR in call.caller.scopes else call.caller.org_id
    return Response(json={"object": "list", "data": await gateway.users.list_records(whose)})


async def change_user(gateway: Gateway, call: Call) -> Response:
    """Change what the body names. An admin changes roles in the own organization only."""
    user_id = path_id(call, "user_id", "user", "user")
    fields = checked_fields(call.json, USER_FIELDS, keeps_null=True)
    is_operator = OPERATOR in call.caller.scopes
    org_id = OrgId(fields.get("org_id") or call.caller.org_id)
    if not is_operator and (fields.get("status") or org_id != call.caller.org_id or fields.get("role") == "operator"):
        raise PermissionDenied("Only operators deactivate people, and give roles in other organizations.")
    if "role" not in fields and not fields.get("status"):
        raise InvalidRequest("Name `role` or `status`.")
    whose = None if is_operator else call.caller.org_id
    if all(record["id"] != user_id for record in await gateway.users.list_records(whose)):
        raise NotFound(f"No such user: {user_id}.")
    if "role" in fields:
        await gateway.users.grant(user_id, org_id, fields["role"])
    if fields.get("status"):
        await gateway.users.set_status(user_id, fields["status"])
    gateway.keys.forget_owner(user_id)
    records = await gateway.users.list_records(whose)
    return Response(json=next(record for record in records if record["id"] == user_id))
