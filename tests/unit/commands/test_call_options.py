"""What commands that call a gateway share: prices in advance, errors."""

from pathlib import Path

import pytest

from penstock.client.connection import Reply
from penstock.commands.call_options import print_estimate
from tests.unit.commands.conftest import Command


def test_a_dry_run_prints_the_cost_and_makes_nothing(run: Command, folder: Path) -> None:
    before = run("requests").out
    for words in (("image", "a fox"), ("video", "a fox", "--seconds", "2"), ("chat", "hello")):
        ended = run(*words, "--dry-run")
        assert ended.status == 0, ended.err
        assert " at most, with atelier/" in ended.out
    assert run("image", "a fox", "--dry-run").out.splitlines()[0] == "$0.001 at most, with atelier/sketch"
    assert list(folder.iterdir()) == []
    assert run("requests").out == before


def test_a_dry_run_lists_the_providers_that_would_be_tried(capsys: pytest.CaptureFixture[str]) -> None:
    """If there are several, or some are left out."""
    first = {"model": "fal/fal-ai/flux-2-pro", "total_cost_micros": 30000, "reason": "sorted by price"}
    second = {"model": "together/flux", "total_cost_micros": 31457, "reason": "sorted by price"}
    estimate = {"total_cost_micros": 30000, "model": "flux-2-pro", "components": [], "candidates": [first]}
    print_estimate(Reply(estimate, {}), as_json=False)
    assert capsys.readouterr().out == "$0.03 at most, with flux-2-pro\n"
    left_out = [{"model": "bfl/flux-2-pro", "reason": "in `provider.ignore`"}]
    print_estimate(Reply({**estimate, "candidates": [first, second], "left_out": left_out}, {}), as_json=False)
    assert capsys.readouterr().out.splitlines()[1:] == [
        "  1. fal/fal-ai/flux-2-pro at $0.03: sorted by price",
        "  2. together/flux at $0.031457: sorted by price",
        "  not bfl/flux-2-pro: in `provider.ignore`",
    ]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("image", "a fox", "-o", "nowhere/fox.png"), "there is no folder nowhere for the file of --output"),
        (("video", "a fox", "-o", "nowhere/fox.mp4"), "there is no folder nowhere for the file of --output"),
        (("image", "a fox", "-o", "/dev/fd/fox.png"), "no file can be written in /dev/fd: "),
        (("video", "a fox", "-o", "/dev/fd/fox.mp4"), "no file can be written in /dev/fd: "),
        (("image", "a fox", "-o", "."), ". is a folder: name a file in it with --output"),
        (("image", "a fox", "-o", "fox.bmp"), "--output fox.bmp names no known format: end it with .jpg, .png, .jpeg"),
        (("image", "a fox", "-n", "2", "-o", "-"), "stdout takes one image; name a file with --output for several"),
    ],
)
def test_what_could_not_be_saved_is_not_made(run: Command, words: tuple[str, ...], problem: str) -> None:
    before = run("requests").out
    ended = run(*words)
    assert (ended.status, ended.out) == (1, "")
    assert ended.err.startswith(f"penstock: {problem}")
    assert run("requests").out == before


WRONG = {
    ("image", "a fox", "-m", "nonesuch"): "MODEL_NOT_FOUND",
    ("image", " "): "there is no prompt",
    ("image", "a fox", "--set", "seed"): "--set takes name=value",
    ("edit", "a hat"): "give a file or an HTTPS URL with --input",
    ("upscale", "nonesuch.png"): "No such file",
    ("video", "--resume", "req_nonesuch"): "NOT_FOUND",
    ("requests", "--limit", "0"): "limit",
    ("image", "a fox", "--key", "pk_bad"): "AUTHENTICATION_FAILED",
}


def test_what_goes_wrong_is_one_line_and_exit_status_1(run: Command, folder: Path) -> None:
    for words, expected in WRONG.items():
        ended = run(*words)
        assert ended.status == 1, words
        assert expected in ended.err, words
        assert len(ended.err.splitlines()) == 1, words
