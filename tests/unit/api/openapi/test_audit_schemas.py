"""The schema of an event accepts what the audit log stores."""

import jsonschema_rs

from penstock.api.openapi.audit_schemas import AUDIT_SCHEMAS
from penstock.audit_log import GATEWAY, Act, EventRow, _event_row
from penstock.values import OrgId


def test_an_event_has_its_shape() -> None:
    act = Act("key.changed", "key_1", OrgId("org_1"), {"name": "a"}, {"name": "b"})
    row = _event_row(act, GATEWAY, 0, "aud_0", "0" * 64)
    record = EventRow(row["id"], row["body"], row["previous"], row["hash"]).record()
    validator = jsonschema_rs.Draft202012Validator(AUDIT_SCHEMAS["AuditEvent"])
    assert validator.is_valid(record)
    assert not validator.is_valid(record | {"more": 1})
