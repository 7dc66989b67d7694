"""`penstock chat`: stream, stdin, tokens, cost."""

import json
from pathlib import Path
from typing import Any

from tests.unit.commands.conftest import Command, TypeOnStdin


def test_a_chat_is_streamed_with_its_tokens_and_its_cost(
    run: Command, folder: Path, type_on_stdin: TypeOnStdin
) -> None:
    type_on_stdin(b"from a file\n")
    ended = run("chat", "hello", "--system", "be short")
    assert ended.status == 0, ended.err
    assert "hello" in ended.out
    assert "from a file" in ended.out
    assert " tokens, $0.0000" in ended.err
    whole: dict[str, Any] = json.loads(run("chat", "hello", "--json").out)
    assert whole["choices"][0]["message"]["content"] == "hello"
