"""Name fields in errors as the caller of the Responses API wrote them, not as the chat call has them."""

import re
from collections.abc import Sequence

from penstock.chat.responses_request import Origin
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


def use_callers_names(problem: Problem, origins: Sequence[Origin]) -> None:
    """Rename the fields in an error; `origins` says for each message of the chat call where it comes from."""
    if problem.param is not None:
        problem.param = _original(problem.param, origins)
    problem.message = _QUOTED.sub(lambda quoted: f"`{_original(quoted[1], origins)}`", problem.message)


def _original(name: str, origins: Sequence[Origin]) -> str:
    if (found := _MESSAGE.fullmatch(name)) and int(found["number"]) < len(origins):
        origin = origins[int(found["number"])]
        if not found["content"]:
            return origin.item + found["inner"]
        return origin.content + re.sub(r"\.image_url\.url$", ".image_url", found["inner"])
    for pattern, original in _NAMES:
        name = pattern.sub(original, name)
    return name
