"""JSON Schemas of the responses about sessions, people and the audit log."""

from collections.abc import Mapping

from penstock.api.openapi.schema_parts import (
    FLAG,
    TEXT,
    TIME,
    Schema,
    always,
    array,
    closed_object,
    list_of,
    one_of,
    open_object,
    or_null,
    ref,
)
from penstock.people.users import ROLES, STATUSES

_BUTTON = closed_object({"button": TEXT})
_INVITATION: Mapping[str, Schema] = {
    "id": TEXT,
    "object": always("invitation"),
    "org_id": TEXT,
    "email": TEXT,
    "role": one_of(*ROLES),
    "created_by": TEXT,
    "created_at": TIME,
    "expires_at": TIME,
}
AUDIT_SCHEMAS: Mapping[str, Schema] = {
    "Session": closed_object(
        {
            "object": always("session"),
            "key": ref("Key"),
            "org": closed_object({"id": TEXT, "name": TEXT}),
            "user": or_null(
                closed_object(
                    {
                        "id": TEXT,
                        "email": or_null(TEXT),
                        "name": or_null(TEXT),
                        "organizations": array(closed_object({"id": TEXT, "name": TEXT, "role": one_of(*ROLES)})),
                    }
                )
            ),
            "expires_at": or_null(TIME),
        }
    ),
    "SignIn": closed_object(
        {"object": always("sign_in"), "key": FLAG, "oidc": or_null(_BUTTON), "proxy": or_null(_BUTTON)}
    ),
    "User": closed_object(
        {
            "id": TEXT,
            "object": always("user"),
            "email": or_null(TEXT),
            "email_verified": FLAG,
            "name": or_null(TEXT),
            "status": one_of(*STATUSES),
            "created_at": TIME,
            "seen_at": TIME,
            "roles": array(
                closed_object({"org_id": TEXT, "role": one_of(*ROLES), "source": one_of("groups", "granted")})
            ),
        }
    ),
    "UserList": list_of("User", pages=False),
    "Invitation": closed_object(_INVITATION),
    "NewInvitation": closed_object({**_INVITATION, "url": or_null(TEXT)}),
    "InvitationList": list_of("Invitation", pages=False),
    "AuditEvent": closed_object(
        {
            "id": TEXT,
            "object": always("audit_event"),
            "created_at": TIME,
            "actor": TEXT,
            "address": or_null(TEXT),
            "request_id": or_null(TEXT),
            "action": TEXT,
            "target": TEXT,
            "org_id": or_null(TEXT),
            "before": or_null(open_object({})),
            "after": or_null(open_object({})),
            "previous": TEXT,
            "hash": TEXT,
        }
    ),
    "AuditEventList": closed_object(
        {
            "object": always("list"),
            "data": array(ref("AuditEvent")),
            "next_page_url": or_null(TEXT),
            "previous_page_url": or_null(TEXT),
            "head": closed_object({"id": or_null(TEXT), "hash": TEXT}),
        }
    ),
}
