"""Error responses, and whether a paid call may be repeated."""

import json
from collections.abc import AsyncIterator

import pytest

from penstock import errors
from penstock.api import problems, responses
from penstock.errors import Problem, Unavailable
from penstock.schema import Response


def shown(problem: Problem, *, generation: bool = True, reached: bool = False) -> Response:
    return problems.problem_response(problem, generation=generation, reached=reached)


def test_every_problem_has_the_error_envelope() -> None:
    response = shown(errors.InvalidRequest("Wrong.", param="n"), generation=False)
    assert response.status == 400
    assert json.loads(responses.encode(response.json)) == {
        "error": {"message": "Wrong.", "type": "invalid_request_error", "code": "INVALID_REQUEST", "param": "n"}
    }
    assert "param" not in shown(errors.NotFound("Gone.")).json["error"]


def test_headers_of_a_problem_are_sent() -> None:
    response = shown(errors.AuthenticationFailed(), generation=False)
    assert (response.status, dict(response.headers)) == (401, {"www-authenticate": "Bearer"})
    limited = shown(errors.RateLimited("Slow down.", headers={"retry-after": "7"}))
    assert dict(limited.headers) == {"retry-after": "7", "x-should-retry": "true"}


def test_only_generations_send_x_should_retry() -> None:
    assert "x-should-retry" not in shown(errors.StorageUnavailable("Full."), generation=False).headers


@pytest.mark.parametrize(
    ("problem", "before", "after"),
    [
        (errors.InvalidRequest("x"), "false", "false"),
        (errors.ModelNotFound("x"), "false", "false"),
        (errors.InsufficientBalance("x"), "false", "false"),
        (errors.AuthenticationFailed(), "false", "false"),
        (errors.Conflict("x"), "false", "false"),
        (errors.RateLimited("x"), "true", "true"),
        (errors.RequestTimeout("x"), "true", "false"),
        (errors.StorageUnavailable("x"), "true", "false"),
        (errors.StorageUnavailable("x", should_retry=True), "true", "true"),
        (errors.StorageUnavailable("x", should_retry=False), "false", "false"),
        (errors.UpstreamError("x"), "false", "false"),
        (errors.UpstreamTimeout("x"), "false", "false"),
        (errors.AllProvidersExhausted("x"), "false", "false"),
        (errors.AllProvidersExhausted("x", should_retry=True), "true", "true"),
        (errors.InternalError(), "false", "false"),
        (Unavailable("x"), "true", "true"),
    ],
)
def test_a_generation_may_be_repeated_only_if_nothing_was_sent(problem: Problem, before: str, after: str) -> None:
    assert shown(problem, reached=False).headers["x-should-retry"] == before
    assert shown(problem, reached=True).headers["x-should-retry"] == after


def test_a_limit_that_a_provider_reported_is_not_repeated() -> None:
    problem = errors.RateLimited("x")
    problem.recorded = True
    assert shown(problem, reached=True).headers["x-should-retry"] == "false"


def test_refusals_are_the_gateways_own() -> None:
    refusals = [errors.InvalidRequest("x"), errors.ModelNotFound("x"), errors.InsufficientBalance("x"),
                errors.RateLimited("x"), errors.PayloadTooLarge("x"), errors.RecordingNotFound("x")]  # fmt: skip
    others = [errors.ContentPolicyViolation("x"), errors.UpstreamError("x"), errors.StorageUnavailable("x"),
              errors.InternalError(), errors.AuthenticationFailed(), Unavailable("x")]  # fmt: skip
    assert all(map(problems.is_refusal, refusals))
    assert not any(map(problems.is_refusal, others))


def test_a_recorded_problem_is_not_recorded_again() -> None:
    problem = errors.InvalidRequest("x")
    problem.recorded = True
    assert not problems.is_refusal(problem)


async def test_a_range_beyond_the_file_is_an_error_and_its_stream_is_closed() -> None:
    closed = []

    async def chunks() -> AsyncIterator[bytes]:
        try:
            yield b"x"
        finally:
            closed.append(True)

    stream = chunks()
    await anext(stream)
    served = Response(status=416, chunks=stream, headers={"content-type": "video/mp4", "content-range": "bytes */9"})
    response = await problems.range_not_satisfiable(served)
    assert closed == [True]
    assert (response.status, response.json["error"]["code"], dict(response.headers)) == (
        416,
        "INVALID_REQUEST",
        {"content-range": "bytes */9"},
    )


def test_a_trail_has_source_lines_and_no_message() -> None:
    with pytest.raises(ValueError, match="prompt") as failure:
        int("a prompt that nobody else may read")
    trail = problems.trail(failure.value)
    assert trail[0] == "ValueError"
    assert trail[1].endswith("test_a_trail_has_source_lines_and_no_message")
    assert "prompt" not in " ".join(trail)
