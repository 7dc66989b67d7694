"""JSON Schemas of the responses about sessions and the audit log."""

from collections.abc import Mapping

from penstock.api.openapi.schema_parts import (
    TEXT,
    TIME,
    Schema,
    always,
    array,
    closed_object,
    open_object,
    or_null,
    ref,
)

AUDIT_SCHEMAS: Mapping[str, Schema] = {
    "Session": closed_object(
        {
            "object": always("session"),
            "key": ref("Key"),
            "org": closed_object({"id": TEXT, "name": TEXT}),
            "expires_at": or_null(TIME),
        }
    ),
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
