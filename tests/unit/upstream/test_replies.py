"""Checking the results that provider files read, and the failures of replies."""

import base64
import re
from typing import Any

import pytest
import structlog
from msgspec.structs import replace

from penstock.providers.spec import File, Provider, Reply, Result
from penstock.upstream import replies
from penstock.upstream.candidate import Candidate
from penstock.upstream.replies import (
    failure_kind,
    failure_message,
    retry_after_seconds,
    sanitize,
    validated,
    with_accepted_cost,
    with_plausible_cost,
    without_leaked_key,
    without_plain_key,
)
from tests.unit.upstream.small_model import small_model


def provider(**fields: Any) -> Provider:
    return Provider(slug="acme", name="Acme", docs="", base_url="https://acme.example/v1", models=(), **fields)


CANDIDATE = Candidate(provider(), small_model())


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (301, "broken"), (400, "rejected"), (401, "broken"), (402, "broken"), (403, "broken"), (404, "rejected"),
        (413, "rejected"), (422, "rejected"), (429, "busy"), (500, "broken"), (503, "down"),
    ],
)  # fmt: skip
def test_the_failure_kind_of_each_status(status: int, kind: str) -> None:
    assert failure_kind(provider(), Reply(status)) == kind


def test_the_provider_files_function_decides_the_failure_kind() -> None:
    assert failure_kind(provider(failure_kind=lambda reply: "refused"), Reply(500)) == "refused"
    assert failure_kind(provider(failure_kind=lambda reply: reply.json["x"]), Reply(500, {}, b"<html>")) == "broken"


def test_failure_messages() -> None:
    body = b'{"error": {"message": "Too\\u0000wide.\\n"}}'
    assert failure_message(provider(), Reply(400, {}, body)) == "Too wide."
    assert failure_message(provider(), Reply(400, {}, b"<html>")) == "Acme responded with HTTP 400."
    assert failure_message(provider(), Reply(400, {}, b'{"error": {"message": 7}}')) == "Acme responded with HTTP 400."
    assert failure_message(provider(), Reply(401, {}, body)) == "Acme did not accept the gateway's account."


@pytest.mark.parametrize(
    "secret",
    [
        "sk-abcdefgh12345678",
        "pk_abcdefgh12345678",
        "r8_abcdefgh12345678",
        "Bearer abcdefgh12345678",
        "whsec_abcdefgh12",
    ],
)
def test_messages_are_sanitized(secret: str) -> None:
    assert secret not in sanitize(f"Key {secret} is wrong.")
    assert sanitize("my own key", "own key") == "my …"
    assert sanitize("a\r\nb\x1b[31m") == "a b [31m"
    assert len(sanitize("x" * 10_000)) == 500
    assert sanitize(None) == ""


KEY = "acme-live-Ab3dE5fG7hJ9kLmN"
_BASE64 = base64.b64encode


@pytest.mark.parametrize(
    "leaked",
    [
        KEY,
        f"Bearer {KEY}",
        KEY.upper(),
        "Ab3dE5fG7hJ9kLmN",
        " ".join(KEY),
        f"{KEY[:12]}\r\n{KEY[12:]}",
        f"{KEY[:12]}\u200b{KEY[12:]}",
        _BASE64(KEY.encode()).decode(),
        _BASE64(f":{KEY}".encode()).decode(),
        _BASE64(f"{KEY}:".encode()).decode(),
    ],
)
def test_no_form_of_the_key_is_left_in_a_message(leaked: str) -> None:
    shown = sanitize(f"wrong: {leaked} (see docs)", KEY)
    assert leaked not in shown
    assert "Ab3dE5" not in re.sub(r"[\s\u200b]", "", shown)
    assert shown.startswith("wrong: ")
    assert shown.endswith(" (see docs)")


def test_an_id_with_the_key_is_dropped() -> None:
    candidate = Candidate(provider(), small_model(), KEY)
    assert without_leaked_key(candidate, Result(upstream_id=f"req-{KEY}")).upstream_id is None
    assert without_leaked_key(candidate, Result(upstream_id="req-1")).upstream_id == "req-1"
    assert without_leaked_key(Candidate(provider(), small_model()), Result(upstream_id="req-1")).upstream_id == "req-1"


def test_a_prompt_of_a_file_is_kept_without_the_key() -> None:
    candidate = Candidate(provider(), small_model(), KEY)
    files = (File(data="", revised_prompt=f"a pear, {KEY}"), File(data="", revised_prompt="a plum"), File(data=""))
    shown = without_leaked_key(candidate, Result(files=files)).files
    assert [file.revised_prompt for file in shown] == ["a pear, …", "a plum", None]


def test_a_short_key_is_a_word_that_a_text_may_have() -> None:
    assert without_plain_key(b"ask ollama", "ollama") == b"ask ollama"
    assert without_plain_key(bytearray(KEY.encode() + b"!"), KEY) == "…!".encode()


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        ("0.5", 0.5),
        ("9999", 120.0),
        ("inf", 120.0),
        ("nan", None),
        ("-1", None),
        ("soon", None),
        ("", None),
    ],
)
def test_retry_after(header: str, seconds: float | None) -> None:
    assert retry_after_seconds(Reply(429, {"retry-after": header})) == seconds


def test_valid_results_are_unchanged() -> None:
    result = Result(
        files=(File(url="https://cdn.example/x", revised_prompt="a red pear"),),
        ref={"id": "7"},
        upstream_id="7",
        message="done",
        cost_usd="0.25",
        usage={"output": 3, "second": 4.5},
        progress=0.5,
        poll_after_seconds=2,
    )
    assert validated(result) == result


@pytest.mark.parametrize("change", [{"ref": {"id": 7}}, {"ref": {"id": None}}, {"upstream_id": 7}, {"upstream_id": []}])
def test_ids_that_cannot_be_used(change: dict[str, Any]) -> None:
    """A job that goes on would be lost; of one that has ended they are left out."""
    with pytest.raises(TypeError):
        validated(replace(Result(status="queued"), **change))
    ended = validated(replace(Result(ref={"file": "8"}), **{"ref": {"file": "8", **change.pop("ref", {})}, **change}))
    assert (ended.ref, ended.upstream_id) == ({"file": "8"}, None)


@pytest.mark.parametrize(
    "file",
    [
        File(url=7),  # type: ignore[arg-type]
        File(),
        File(data=7),  # type: ignore[arg-type]
        File(data="x", url=7),  # type: ignore[arg-type]
        File(url="http://[::1"),
    ],
)
def test_files_that_cannot_be_used_are_left_out(file: File) -> None:
    other = File(url="https://files.test/1")
    assert validated(Result(files=(file, other))).files == (other,)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("progress", ["x", float("nan"), float("inf"), -1, {}]),
        ("poll_after_seconds", ["x", float("nan"), float("inf"), -1, 1e12]),
        ("message", [7, {}, []]),
    ],
)
def test_implausible_values_are_left_out(name: str, values: list[Any]) -> None:
    for value in values:
        assert getattr(validated(replace(Result(), **{name: value})), name) is None, value


def test_implausible_usage_is_left_out() -> None:
    usage: Any = {"output": -1, "input": "many", "second": 4, "token": float("nan"), "image": 10**30}
    assert validated(replace(Result(), usage=usage)).usage == {"second": 4}


def test_the_cost_of_acceptance_counts_if_the_end_names_none() -> None:
    done = Result(files=(File(url="https://acme.example/a.png"),))
    cases = (
        (done, {"id": "1", "cost_usd": "0.05"}, "0.05"),
        (replace(done, cost_usd="0.04"), {"cost_usd": "0.05"}, "0.04"),
        (replace(done, status="in_progress"), {"cost_usd": "0.05"}, None),
        (replace(done, status="failed"), {"cost_usd": "0.05"}, None),
        (done, {"id": "1"}, None),
    )
    for result, ref, cost in cases:
        assert with_accepted_cost(result, ref).cost_usd == cost, (result, ref)


@pytest.mark.parametrize("cost", ["-1", "nan", "snan", "inf", "1e30", "free", [], {}])
def test_a_cost_that_cannot_be_right_is_left_out_and_logged(cost: Any) -> None:
    """The price of the table is charged instead."""
    made = Result(files=(File(url="https://acme.example/a.png"),), upstream_id="7")
    with structlog.testing.capture_logs() as lines:
        assert with_plausible_cost(CANDIDATE, replace(made, cost_usd=cost)) == made
    assert lines == [{"event": "wrong cost reported", "log_level": "warning", "provider": "acme", "model": "brush-1"}]


def test_a_plausible_cost_is_kept() -> None:
    for cost in (None, "0", "0.25", "1E-7"):
        assert with_plausible_cost(CANDIDATE, Result(cost_usd=cost)).cost_usd == cost


def test_of_a_long_message_only_the_beginning_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some servers quote the whole body of a call that they refuse, and other calls wait meanwhile."""
    lengths: list[int] = []

    class Searched:
        def sub(self, replacement: str, text: str) -> str:
            lengths.append(len(text))
            return text

    for name in ("_CONTROL_CHARACTERS", "_SECRETS"):
        monkeypatch.setattr(replies, name, Searched())
    assert replies.sanitize("a" * 10_000_000) == "a" * 500
    assert len(lengths) == 2
    assert max(lengths) <= 5000


def test_of_many_files_the_first_hundred_are_used() -> None:
    many = tuple(File(url=f"https://files.test/{number}") for number in range(101))
    assert replies.validated(Result(files=many)).files == many[:100]
