"""Only headers that are clean, and not set by the HTTP client itself, become lines of a request."""

import pytest

from penstock.net import header_lines as module
from penstock.net.header_lines import FixedHeaders, header_lines


def test_headers_become_lines() -> None:
    assert header_lines({"authorization": "Bearer x", "x-more": ""}) == "authorization: Bearer x\r\nx-more: \r\n"
    assert header_lines({}) == ""


@pytest.mark.parametrize(
    "headers",
    [{"x": "a\r\ny: b"}, {"x": "a\0"}, {"x": "ä"}, {"x y": "a"}, {"": "a"}, {"Content-Length": "3"}, {"host": "test"}],
)
def test_other_headers_are_left_to_the_library(headers: dict[str, str]) -> None:
    assert header_lines(headers) is None
    assert FixedHeaders(headers).lines is None


def test_fixed_headers_are_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[object] = []

    def counting(headers: dict[str, str]) -> str | None:
        checked.append(headers)
        return header_lines(headers)

    monkeypatch.setattr(module, "header_lines", counting)
    fixed = FixedHeaders({"x-a": "b"})
    assert (fixed.lines, fixed.lines) == ("x-a: b\r\n", "x-a: b\r\n")
    assert checked == [fixed]
