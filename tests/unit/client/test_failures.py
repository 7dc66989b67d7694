"""What the errors of the gateway become."""

from penstock.client.failures import refusal


def test_an_error_keeps_its_code_its_field_and_the_id_of_the_request() -> None:
    content = b'{"error": {"message": "No.", "type": "t", "code": "INVALID_REQUEST", "param": "n"}}'
    found = refusal(400, content, {"x-request-id": "req_1"})
    assert (found.status, found.code, found.param, found.request_id) == (400, "INVALID_REQUEST", "n", "req_1")
    assert str(found) == "No. (INVALID_REQUEST)"


def test_an_error_of_something_else_is_one_too() -> None:
    for content in (b"", b"[]", b"<html>", b'{"error": "no"}'):
        assert "status 502" in str(refusal(502, content, {}))
