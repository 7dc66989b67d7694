"""`penstock providers`: listed locally, listed by a running gateway, and checked against simulated providers."""

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock.commands.output import usd
from penstock.commands.providers import _health_text
from tests.command_line import Ended, done, penstock
from tests.fake_providers import faults
from tests.fake_providers.scripted import KEY, KEY_ENV, ScriptedProvider, scripted_provider_in_thread
from tests.stories.processes import Installation

NO_KEY = {"FAL_KEY": "", "PENSTOCK_KEY": ""}


@pytest.fixture
def lab() -> Iterator[ScriptedProvider]:
    with scripted_provider_in_thread() as lab:
        lab.poll_after_ms = 10
        yield lab


@contextmanager
def described(data: Path, lab: ScriptedProvider) -> Iterator[Path]:
    """Return a data folder whose penstock.toml configures the fake provider."""
    Installation(data, "", lab)._describe()
    yield data


def check(data: Path, lab: ScriptedProvider, *words: str | Path) -> Ended:
    with described(data, lab):
        return penstock("providers", "check", "lab", "--data", data, *words, **{KEY_ENV: KEY})


def test_every_provider_is_listed_with_its_missing_credential(tmp_path: Path) -> None:
    rows = {row[0]: row[1:] for row in done("providers", "--data", tmp_path, **NO_KEY).lines}
    assert rows["atelier"] == ["Atelier", "on", "", "", "9"]
    assert rows["fal"][1:4] == ["off", "FAL_KEY is not set", "FAL_KEY"]
    assert int(rows["fal"][4]) > 1
    with_key = {row[0]: row[1:] for row in done("providers", "--data", tmp_path, FAL_KEY="x").lines}
    assert with_key["fal"][1:3] == ["on", ""]
    disabled = done("providers", "--data", tmp_path, PENSTOCK_DISABLED_PROVIDERS="atelier").lines
    assert next(row for row in disabled if row[0] == "atelier")[2:4] == ["off", "switched off in the settings"]


def test_a_running_gateway_reports_the_health_of_providers(tmp_path: Path, lab: ScriptedProvider) -> None:
    installation = Installation(tmp_path / "data", "", lab)
    with installation.serving() as served:
        assert served.call("POST", "/compat/v1/images/generations", {"model": "image-1", "prompt": "x"}).status == 200
        seen = done("providers", "--url", served.url, PENSTOCK_KEY=served.key)
        refused = penstock("providers", "--url", served.url, "--key", "pk_wrong")
    rows = {row[0]: row for row in seen.lines}
    assert rows["lab"][-1] == "1 succeeded, 0 failed"
    assert rows["atelier"][-1] == "not called yet"
    assert refused.status == 1
    assert "AUTHENTICATION_FAILED" in refused.err
    assert served.key not in seen.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--url", "http://127.0.0.1:9"), "give --key, or set PENSTOCK_KEY"),
        (("--url", "ftp://x", "--key", "k"), "must begin with http:// or https://"),
        (("--url", "http://127.0.0.1:9", "--key", "k"), "penstock: "),
    ],
)
def test_a_bad_url_or_key_of_a_gateway_is_an_error(words: tuple[str, ...], message: str) -> None:
    ended = penstock("providers", *words, **NO_KEY)
    assert (ended.status, ended.out) == (1, "")
    assert message in ended.err


def test_health_is_summarized() -> None:
    rows = [
        {"model": "a", "healthy": True, "rejected": 0, "successes": 3, "failures": 0, "last_problem": None},
        {"model": "b", "healthy": False, "rejected": 0, "successes": 1, "failures": 4, "last_problem": "busy"},
    ]
    assert _health_text(rows) == "4 succeeded, 4 failed, b unhealthy (busy)"


# --------------------------------------------------------------------------------------------------------------- trials


def test_a_running_gateway_makes_the_check_itself(tmp_path: Path, lab: ScriptedProvider) -> None:
    installation = Installation(tmp_path / "data", "", lab)
    with installation.serving() as served:
        ended = done("providers", "check", "lab", "--data", installation.data, "--yes", **{KEY_ENV: ""})
        [request] = served.call("GET", "/v1/requests").json["data"]
        lab.chats.always(faults.unauthorized)
        failed = penstock("providers", "check", "lab", "--data", installation.data, "--yes", **{KEY_ENV: ""})
    assert ended.out.startswith("lab works: lab/lab/chat in ")
    assert f"request {request['id']}" in ended.out
    assert (failed.status, "lab does not work" in failed.err) == (1, True)


def test_the_cheapest_call_is_made_and_reported(tmp_path: Path, lab: ScriptedProvider) -> None:
    ended = check(tmp_path / "data", lab, "--yes")
    assert ended.status == 0, ended
    (message,) = ended.out.splitlines()
    assert "lab/lab/chat (chat): at most $0.000" in ended.err
    assert "lab works: " in message
    assert usd(lab.bill_usd) in message
    assert len(lab.invoice) == 1


@pytest.mark.parametrize(
    ("model", "made"), [("image-1", "an image of "), ("edit-1", "an image of "), ("video-1", "a video of ")]
)
def test_a_model_can_be_named(tmp_path: Path, lab: ScriptedProvider, model: str, made: str) -> None:
    ended = check(tmp_path / "data", lab, "--yes", "--model", model)
    assert ended.status == 0, ended
    assert f"lab works: {made}" in ended.out
    assert len(lab.invoice) == 1


def test_a_recording_is_written_and_can_be_imported(tmp_path: Path, data_folder: Path, lab: ScriptedProvider) -> None:
    ended = check(tmp_path / "checked", lab, "--yes", "--record", tmp_path / "kept")
    assert ended.status == 0, ended
    path = Path(ended.out.splitlines()[-1])
    document = json.loads(path.read_text())
    assert (path.parent, document["provider"]) == (tmp_path / "kept", "lab")
    assert KEY not in path.read_text()
    imported = done("recordings", "import", path, "--data", data_folder).out.strip()
    listed = done("recordings", "list", "--data", data_folder).out
    assert imported in listed
    assert imported != document["id"], "an import gets an id of its own"


def test_chat_calls_are_not_recorded(tmp_path: Path, lab: ScriptedProvider) -> None:
    ended = check(tmp_path / "data", lab, "--yes", "--model", "lab/chat", "--record", tmp_path / "kept")
    assert ended.status == 1
    assert "Chat, speech and transcripts are not recorded" in ended.err
    assert len(lab.invoice) == 0


@pytest.mark.parametrize(
    ("model", "act"),
    [("image-1", faults.error(500, "out of paint")), ("video-1", faults.video_states("in_progress", "failed"))],
)
def test_a_failing_provider_is_reported(tmp_path: Path, lab: ScriptedProvider, model: str, act: Any) -> None:
    (lab.images if model == "image-1" else lab.videos).next(act)
    ended = check(tmp_path / "data", lab, "--yes", "--model", model)
    assert ended.status == 1
    assert "lab does not work: UPSTREAM_ERROR: " in ended.err


@pytest.mark.parametrize(("typed", "calls"), [("n\n", 0), ("", 0), ("y\n", 1)])
def test_nothing_is_spent_without_confirmation(
    tmp_path: Path, lab: ScriptedProvider, monkeypatch: pytest.MonkeyPatch, typed: str, calls: int
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    ended = check(tmp_path / "data", lab, "--model", "image-1")
    assert (ended.status == 0) is (calls > 0)
    assert len(lab.invoice) == calls


def test_a_check_writes_nothing_to_the_data_folder(tmp_path: Path, lab: ScriptedProvider) -> None:
    check(tmp_path / "data", lab, "--yes", "--model", "image-1")
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["penstock.toml"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nonesuch",), "no such provider: nonesuch; known providers are "),
        (("fal",), "fal is off: FAL_KEY is not set"),
        (("atelier", "--model", "nonesuch"), "atelier has no model that matches nonesuch"),
    ],
)
def test_a_check_that_cannot_be_made_is_an_error(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    ended = penstock("providers", "check", *words, "--yes", "--data", tmp_path, **NO_KEY)
    assert (ended.status, ended.out) == (1, "")
    assert message in ended.err
