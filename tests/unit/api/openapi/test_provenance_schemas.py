"""What is said about a file fits its schema."""

import jsonschema_rs
import pytest

from penstock.api.openapi.provenance_schemas import VERIFICATION

NOTHING = {
    "object": "verification",
    "verdict": "none",
    "explanation": "x",
    "sha256": "00",
    "content_type": None,
    "request_id": None,
    "credentials": None,
    "marks": {"digital_source_type": None, "aigc": False},
}


@pytest.mark.parametrize(("changes", "fits"), [({}, True), ({"verdict": "genuine"}, False), ({"key": "x"}, False)])
def test_a_verification_has_these_fields_and_no_others(changes: dict[str, str], fits: bool) -> None:
    assert jsonschema_rs.is_valid(VERIFICATION, {**NOTHING, **changes}) == fits
