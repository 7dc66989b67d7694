"""The table of errors: status, type and code."""

import pytest

from penstock import errors
from penstock.errors import Problem

# code, status, type
TABLE = """
    AUTHENTICATION_FAILED     401  authentication_error
    PERMISSION_DENIED         403  permission_error
    INSUFFICIENT_BALANCE      402  insufficient_quota
    INVALID_REQUEST           400  invalid_request_error
    CONTENT_POLICY_VIOLATION  400  invalid_request_error
    REQUEST_TIMEOUT           408  invalid_request_error
    MODEL_NOT_FOUND           404  invalid_request_error
    MODEL_DISABLED            404  invalid_request_error
    NOT_FOUND                 404  invalid_request_error
    RECORDING_NOT_FOUND       404  invalid_request_error
    METHOD_NOT_ALLOWED        405  invalid_request_error
    CONFLICT                  409  invalid_request_error
    IDEMPOTENCY_IN_PROGRESS   409  invalid_request_error
    IDEMPOTENCY_COMPLETED     409  invalid_request_error
    PAYLOAD_TOO_LARGE         413  invalid_request_error
    STORAGE_QUOTA_EXCEEDED    413  insufficient_quota
    UNPROCESSABLE_REQUEST     422  invalid_request_error
    UNSUPPORTED_MEDIA_TYPE    415  invalid_request_error
    DELIVERY_FAILED           502  api_error
    HEADERS_TOO_LARGE         431  invalid_request_error
    RATE_LIMITED              429  rate_limit_error
    ALL_PROVIDERS_EXHAUSTED   502  api_error
    UPSTREAM_ERROR            502  api_error
    UPSTREAM_OUTCOME_UNKNOWN  502  api_error
    UPSTREAM_TIMEOUT          504  api_error
    STORAGE_UNAVAILABLE       503  api_error
    PROVENANCE_UNAVAILABLE    503  api_error
    UNAVAILABLE               503  api_error
    INTERNAL_ERROR            500  api_error
    CANCELLED                 409  api_error
"""
ROWS = [tuple(line.split()) for line in TABLE.strip().splitlines()]
ABSTRACT = {"Problem", "UpstreamProblem"}


def kinds() -> dict[str, type[Problem]]:
    found = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Problem)]
    return {kind.code: kind for kind in found if kind.__name__ not in ABSTRACT}


@pytest.mark.parametrize(("code", "status", "type_"), ROWS, ids=str)
def test_status_and_type(code: str, status: str, type_: str) -> None:
    kind = kinds()[code]
    assert (kind.status, kind.type) == (int(status), type_)


def test_table_is_complete() -> None:
    assert sorted(kinds()) == sorted(row[0] for row in ROWS)


def test_errors_that_only_the_gateway_distinguishes_are_their_base_for_callers() -> None:
    for kind, base in (
        (errors.TooManyRequests, errors.RateLimited),
        (errors.BudgetReached, errors.RateLimited),
        (errors.InputsNotTaken, errors.InvalidRequest),
    ):
        assert (kind.status, kind.type, kind.code) == (base.status, base.type, base.code)
    listed = [kind.code for kind in errors.problem_kinds()]
    assert sorted(listed) == sorted(row[0] for row in ROWS), "each once"


def test_body_has_param_only_when_one_field_is_wrong() -> None:
    assert errors.ModelNotFound("No such model.", param="model").body() == {
        "error": {
            "message": "No such model.",
            "type": "invalid_request_error",
            "code": "MODEL_NOT_FOUND",
            "param": "model",
        }
    }
    assert "param" not in errors.NotFound("Nothing here.").body()["error"]


def test_every_bad_key_gets_the_same_message() -> None:
    one, other = errors.AuthenticationFailed(), errors.AuthenticationFailed()
    assert one.body() == other.body()
    assert one.headers == {"www-authenticate": "Bearer"}


def test_internal_errors_have_no_details_and_are_not_repeated() -> None:
    problem = errors.InternalError()
    assert problem.should_retry is False
    assert problem.body()["error"]["message"] == "The gateway failed to handle this request."


def test_headers_of_one_problem_are_not_shared() -> None:
    given = {"retry-after": "1"}
    problem = errors.RateLimited("Slow down.", headers=given)
    problem.headers["x"] = "y"
    assert given == {"retry-after": "1"}
    assert errors.RateLimited("Slow down.").headers == {}


def test_a_new_problem_is_unrecorded_and_has_no_should_retry() -> None:
    problem = errors.UpstreamError("It broke.")
    assert (problem.recorded, problem.should_retry, str(problem)) == (False, None, "It broke.")
