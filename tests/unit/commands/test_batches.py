"""`penstock batch`: a file is run into a folder, and the same command goes on with it instead of paying twice."""

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.commands import batches
from tests.unit.commands.conftest import Command

ROWS = "custom_id,prompt\npear,a pear\nplum,a plum\n"
WORDS = ("batch", "run", "rows.csv", "-o", "out", "--model", "image-1", "--set", "size=64x64")


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "out").iterdir())


def test_a_file_is_run_into_a_folder_once(run: Command, folder: Path) -> None:
    (folder / "rows.csv").write_text(ROWS)
    ended = run(*WORDS)
    assert ended.status == 0, ended.err
    assert "2 rows, about $0.08" in ended.err
    assert "Saved 2 rows in out, $0.08" in ended.err
    assert files(folder) == ["000001-pear.png", "000002-plum.png", "batch.json", "results.jsonl"]
    state = json.loads((folder / "out" / "batch.json").read_text())
    again = run(*WORDS)
    assert (again.status, "Saved 2 rows" in again.err) == (0, True)
    listed = json.loads(run("batch", "list", "--json").out)
    assert [batch["id"] for batch in listed if batch["name"] == "rows.csv"][:1] == [state["id"]]
    assert json.loads(run("batch", "show", state["id"], "--json").out)["counts"]["completed"] == 2
    assert "completed=2" in run("batch", "show", state["id"]).out
    (folder / "rows.csv").write_text(ROWS + "fig,a fig\n")
    other = run(*WORDS)
    assert (other.status, "belongs to another batch" in other.err) == (1, True)


def test_an_answer_that_was_lost_makes_no_second_batch(run: Command, folder: Path) -> None:
    (folder / "rows.csv").write_text(ROWS)
    assert run(*WORDS).status == 0
    state_file = folder / "out" / "batch.json"
    state = json.loads(state_file.read_text())
    state_file.write_text(json.dumps({name: value for name, value in state.items() if name != "id"}))
    assert run(*WORDS).status == 0
    assert json.loads(state_file.read_text())["id"] == state["id"]


def test_ctrl_c_pauses_and_the_same_command_goes_on(
    run: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "rows.csv").write_text(ROWS)

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(batches, "_show", interrupt)
        stopped = run(*WORDS)
    assert stopped.status == 130
    assert "run the same command to go on" in stopped.err
    ended = run(*WORDS)
    assert (ended.status, "going on with" in ended.err) == (0, True), ended.err
    assert len(files(folder)) == 4


def test_a_dry_run_says_the_sum_and_which_rows_are_wrong(run: Command, folder: Path) -> None:
    (folder / "rows.csv").write_text("prompt,n\na pear,1\na plum,77\n")
    refused = run(*WORDS, "--dry-run")
    assert (refused.status, "Row 2, column `n`" in refused.err) == (1, True), refused.err
    assert not (folder / "out").exists()
    estimate = run(*WORDS, "--dry-run", "--skip-invalid")
    assert "1 rows cost about $0.04, and $0.04 at most" in estimate.out
    assert "left out: row 2, column n" in estimate.out
    assert run(*WORDS).status == 1
    assert files(folder) == []


def test_a_batch_that_reaches_its_budget_says_how_to_go_on(run: Command, folder: Path) -> None:
    (folder / "rows.csv").write_text(ROWS)
    paused = run(*WORDS, "--max-cost", "0.05")
    assert (paused.status, "a larger one" in paused.err) == (1, True), paused.err
    assert run(*WORDS, "--max-cost", "0.5").status == 0


def test_a_batch_is_cancelled(run: Command, folder: Path) -> None:
    (folder / "rows.csv").write_text(ROWS)
    run(*WORDS, "--max-cost", "0.05")
    batch_id = json.loads((folder / "out" / "batch.json").read_text())["id"]
    cancelled = run("batch", "cancel", batch_id)
    assert (cancelled.status, f"{batch_id} is cancelling: 1/2 rows" in cancelled.out) == (0, True), cancelled.out
