"""Name fields in errors as the caller of the Responses API wrote them, not as the chat call has them."""

import re

from penstock.chat.responses_request import ResponsesRequest
from penstock.errors import Problem

_MESSAGE = re.compile(r"messages\[(?P<number>\d+)\](?P<content>\.content)?(?P<inner>.*)")
_QUOTED = re.compile(r"`([^`]+)`")
# Fields of a chat call, and what they were before the translation; what follows such a name stays.
_NAMES = (
    (re.compile(r"^messages$"), "input"),
    (re.compile(r"^max_tokens$"), "max_output_tokens"),
    (re.compile(r"^reasoning_effort$"), "reasoning.effort"),
    (re.compile(r"^verbosity$"), "text.verbosity"),
    (re.compile(r"^response_format(\.json_schema)?"), "text.format"),
    (re.compile(r"^(tools\[\d+\])\.function"), r"\1"),
)


def use_callers_names(problem: Problem, request: ResponsesRequest) -> None:
    """Rename the fields in an error, as the caller of this request has named them."""
    if problem.param is not None:
        problem.param = _original(problem.param, request)
    problem.message = _QUOTED.sub(lambda quoted: f"`{_original(quoted[1], request)}`", problem.message)


def _original(name: str, request: ResponsesRequest) -> str:
    if name == "user" and "user" not in request.body:
        return "safety_identifier"
    origins = request.origins
    if (found := _MESSAGE.fullmatch(name)) and int(found["number"]) < len(origins):
        origin = origins[int(found["number"])]
        if not found["content"]:
            return origin.item + found["inner"]
        return origin.content + re.sub(r"\.image_url\.url$", ".image_url", found["inner"])
    for pattern, original in _NAMES:
        name = pattern.sub(original, name)
    return name
