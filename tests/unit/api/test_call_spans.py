"""The attributes of a call's span."""

from types import SimpleNamespace
from typing import Any, cast

from penstock.api.call_spans import describe_call


class Span:
    """Keeps what it is told."""

    is_recorded = True

    def __init__(self) -> None:
        self.attributes: dict[str, Any] = {}
        self.failure: str | None = None

    def set(self, name: str, value: Any) -> None:
        self.attributes[name] = value

    def fail(self, text: str) -> None:
        self.failure = text


def test_a_failed_call_says_its_code_and_no_path_of_a_stranger() -> None:
    route = SimpleNamespace(method="GET", path="/m/{media_id}", generation=False)
    state = SimpleNamespace(report=None, route=route, call=None, caller=None, status=500, id="req_1", code="INTERNAL")
    span = Span()
    describe_call(cast(Any, span), cast(Any, state))
    assert span.failure == "INTERNAL"
    assert span.attributes["http.route"] == "/m/{media_id}"
    assert "url.path" not in span.attributes
