"""Waiting for a job and saving its files, as `penstock video`, `sound` and `music` do."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from penstock.client.failures import CallFailed
from penstock.commands import jobs
from penstock.commands.gateway_client import GatewayClient, JobState

ENDED = {
    "id": "req_1",
    "model": "lab/film",
    "status": "completed",
    "outputs": [{"url": "/one"}, {"url": "/two"}],
    "metadata": {"executed_model": "lab/film", "cost": 0.5},
}
FAILED = {**ENDED, "status": "failed", "error": {"message": "It broke.", "code": "BROKEN"}}


class Gateway:
    """Gives the states of a job one after the other, and the URL of a file as its content."""

    def __init__(self, *states: JobState) -> None:
        self._states = iter(states)

    def get_job(self, job_id: str, kind: str) -> JobState:
        return next(self._states)

    def download(self, url: str) -> Iterator[tuple[dict[str, str], bytes]]:
        yield {}, url.encode()


def gateway(*states: JobState) -> GatewayClient:
    return cast(GatewayClient, Gateway(*states))


def save(found: dict[str, Any], output: Path) -> None:
    jobs.save_job(
        gateway(), found, "video", output, False, ending=lambda item: "mp4", about=lambda item: f"{item['url']}, "
    )


def test_a_job_is_polled_until_it_has_ended() -> None:
    running = {**ENDED, "status": "in_progress", "progress": 40}
    found = jobs.wait_for_job(gateway(JobState(running, 0.0), JobState(ENDED, None)), "req_1", "video", "left")
    assert found == ENDED


def test_whoever_leaves_is_told_how_to_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", interrupt)
    with pytest.raises(KeyboardInterrupt):
        jobs.wait_for_job(gateway(JobState(ENDED, 1.0)), "req_1", "video", "penstock video --resume req_1")
    assert "penstock video --resume req_1" in capsys.readouterr().err


def test_each_file_is_saved_under_its_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(ENDED, tmp_path / "film.mp4")
    assert sorted(file.read_text() for file in tmp_path.iterdir()) == ["/one", "/two"]
    said = capsys.readouterr().err
    assert "(/one, 0 kB)" in said
    assert "lab/film, $0.5" in said


def test_a_failed_job_saves_nothing_and_says_why(tmp_path: Path) -> None:
    with pytest.raises(CallFailed, match=r"It broke\. \(BROKEN\)"):
        save(FAILED, tmp_path / "film.mp4")
    assert list(tmp_path.iterdir()) == []
