"""`penstock trial`: a file of prompts is made with each model, and the results are printed."""

import json
from pathlib import Path

import pytest

from penstock.commands.trials import _rate
from tests.unit.commands.conftest import Command

WORDS = ("trial", "run", "prompts.csv", "--models", "image-1, atelier/sketch", "--set", "size=64x64")


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "prompts.csv").write_text("prompt\na pear\n")
    monkeypatch.chdir(tmp_path)


def test_the_price_is_shown_and_then_the_trial_runs(run: Command) -> None:
    estimate = run(*WORDS, "--dry-run")
    assert (estimate.status, estimate.out.splitlines()[0]) == (0, "2 outputs cost about $0.041"), estimate.err
    ended = run(*WORDS, "--share", "--name", "fruit")
    assert ended.status == 0, ended.err
    assert "2 outputs, about $0.041" in ended.err
    assert "/vote#" in ended.err
    assert "no votes" in ended.out
    trial_id = ended.err.split(":")[0].split()[-1]
    shown = json.loads(run("trial", "show", trial_id, "--json").out)
    assert (shown["name"], shown["counts"]["completed"]) == ("fruit", 2)


def test_a_trial_whose_budget_is_used_up_goes_on_with_a_larger_one(run: Command) -> None:
    paused = run(*WORDS, "--max-cost", "0.01")
    assert paused.status == 1
    trial_id = paused.err.split(":")[0].split()[-1]
    assert f"is paused (max_cost); `penstock trial resume {trial_id}` with a larger --max-cost goes on" in paused.err
    again = run("trial", "resume", trial_id)
    assert (again.status, "is paused (max_cost)" in again.err) == (1, True)
    ended = run("trial", "resume", trial_id, "--max-cost", "1", "--json")
    assert (ended.status, json.loads(ended.out)["counts"]["completed"]) == (0, 2), ended.err
    over = run("trial", "resume", trial_id)
    assert (over.status, "A batch that is `completed` cannot be changed by `resume`" in over.err) == (1, True)


def test_what_cannot_be_run_is_refused(run: Command) -> None:
    wrong = run(*WORDS, "--kind", "song")
    assert (wrong.status, "--kind must be one of" in wrong.err) == (1, True)
    alone = run("trial", "run", "prompts.csv", "--models", "image-1")
    assert (alone.status, "2 to 6" in alone.err) == (1, True)


def test_a_rate_is_shown_with_its_interval() -> None:
    assert _rate({"win_rate": 0.5, "win_rate_low": 0.3, "win_rate_high": 0.7}) == "50 % (30-70)"
