"""Schemas of the responses about the account."""

from penstock.accounts.requests import KINDS
from penstock.api.openapi.account_schemas import ACCOUNT_SCHEMAS
from penstock.generations.records import REASONS


def test_a_request_record_has_the_fields_of_the_interface_and_more() -> None:
    schema = ACCOUNT_SCHEMAS["Request"]
    assert {"id", "cost", "key_id", "attempts", "cost_lines", "outputs", "webhook"} <= set(schema["required"])
    assert schema["properties"]["kind"]["enum"] == [*KINDS, None]
    assert REASONS, "an attempt's failure has a kind and a reason"
