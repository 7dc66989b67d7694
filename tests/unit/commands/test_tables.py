"""Rows are a table on a terminal, and lines or JSON anywhere else."""

import os
import pty
import re
import subprocess
import sys

import pytest

from penstock.commands import tables


def test_output_to_a_pipe_is_separated_by_tabs(capsys: pytest.CaptureFixture[str]) -> None:
    tables.show_table("Things", ["a", "b", "c"], [["x", None, 1], ["y", True, 2.5]])
    assert capsys.readouterr().out == "x\t\t1\ny\tTrue\t2.5\n"


def test_lists_and_objects_are_not_printed_as_python_writes_them(capsys: pytest.CaptureFixture[str]) -> None:
    tables.show_table("Things", ["a", "b"], [[("x", "y"), {"c": None, "d": "e"}], [[], {}]])
    assert capsys.readouterr().out == 'x, y\t{"c":null,"d":"e"}\n\t{}\n'


def shown(columns: int, call: str) -> str:
    """What a call of `show_table` prints on a pseudo-terminal of this width."""
    ours, theirs = pty.openpty()
    code = f"from penstock.commands.tables import show_table; {call}"
    with os.fdopen(ours, "rb", buffering=0) as reader:
        environment = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm"}
        subprocess.run([sys.executable, "-c", code], stdout=theirs, check=True, timeout=60, env=environment)
        os.close(theirs)
        return re.sub(r"\x1b\[[0-9;]*m", "", reader.read(65536).decode())  # without styles


def test_output_to_a_terminal_is_a_table() -> None:
    seen = shown(80, "show_table('Things', ['name', 'size'], [['pear', 3]])")
    assert all(word in seen for word in ("Things", "name", "size", "pear", "3"))
    assert "\t" not in seen


def test_numbers_on_a_terminal_end_below_each_other() -> None:
    seen = shown(
        80, "show_table('Costs', ['name', 'cost', 'error'], [['pear', '$12.50', None], ['fig', '$0.5', None]])"
    )
    ends = [line.rstrip() for line in seen.split("\r\n") if "$" in line or "cost" in line]
    assert ends[0].index("cost") + len("cost") == len(ends[1]) == len(ends[2])


def test_an_empty_list_on_a_terminal_says_so() -> None:
    assert shown(80, "show_table('Things', ['name'], [])") == "Things: none\r\n"


ROWS = [["req_01a1ec2cdd7696f2619bd132099d4ec8", "2026-11-18T01:02:05.686Z", "upstream_failure", None]]


@pytest.mark.parametrize(("columns", "lines"), [(200, 1), (90, 1), (80, 2), (60, 2), (20, 2)])
def test_words_on_a_terminal_are_not_broken(columns: int, lines: int) -> None:
    seen = shown(columns, f"show_table('Requests', ['id', 'created', 'status', 'error'], {ROWS})").split("\r\n")
    [with_id] = [number for number, line in enumerate(seen) if "req_01a1ec2cdd7696f2619bd132099d4ec8" in line]
    row = " ".join(seen[with_id : with_id + lines]).split(" ")
    texts = ["2026-11-18\u00a001:02", "req_01a1ec2cdd7696f2619bd132099d4ec8", "upstream_failure"]
    assert sorted(filter(None, row)) == texts


def test_rows_that_are_too_wide_for_a_terminal_are_lines_of_name_and_value() -> None:
    row = ["public URL", "http://127.0.0.1:8080, on this machine only", None]
    seen = shown(40, f"show_table('Checks', ['check', 'found', 'what to do'], [{row}, {row}])").split("\r\n")
    lines = ["check       public URL", "found       http://127.0.0.1:8080, on this machine only"]
    assert seen == ["Checks", "", *lines, "", *lines, ""]


def test_a_long_text_on_a_terminal_is_wrapped_and_not_cut() -> None:
    """Beside an id and other columns that leave it little room."""
    text = " ".join(f"word-{number}" for number in range(12))
    rows = [["key_01a1ece6cad919ba29b96a6ad79260ab", "for the web page", "active", "2026-11-18T01:02:05.686Z", text]]
    seen = shown(100, f"show_table('Keys', ['id', 'name', 'status', 'created', 'limits'], {rows})")
    assert [word for word in seen.split() if word.startswith("word-")] == text.split()
    assert max(map(len, seen.split("\r\n"))) <= 100
