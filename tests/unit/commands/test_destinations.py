"""`penstock destinations`: add, list, change, check, rotate and delete, without a secret in sight."""

import json
from pathlib import Path

import pytest

from tests.command_line import Ended, penstock
from tests.s3_server import KEY_ID, SECRET, S3Server


class Destinations:
    """The commands on a data folder whose gateway may reach this machine."""

    def __init__(self, data: Path, s3: S3Server) -> None:
        self.data, self.s3 = data, s3
        self.secret = data / "secret.txt"
        self.secret.write_text(f"{SECRET}\n")

    def __call__(self, *words: str | Path) -> Ended:
        ended = penstock("destinations", *words, "--data", self.data, PENSTOCK_EGRESS_ALLOW_CIDRS="127.0.0.0/8")
        assert SECRET not in ended.out + ended.err
        return ended

    def add(self, *words: str) -> Ended:
        return self("add", self.s3.new_url(), "--endpoint", self.s3.endpoint, *self.key(), *words)

    def key(self) -> tuple[str | Path, ...]:
        return "--access-key-id", KEY_ID, "--from-file", self.secret


@pytest.fixture
def destinations(data_folder: Path, s3: S3Server) -> Destinations:
    return Destinations(data_folder, s3)


def test_a_destination_is_added_changed_checked_rotated_and_deleted(destinations: Destinations) -> None:
    added = destinations.add("--name", "archive", "--default", "--region", "eu-central-1")
    assert (added.status, added.err) == (0, "")
    own = added.out.split()[1]
    [row] = destinations("list").lines
    assert (row[0], row[1], row[3:5]) == (own, "archive", ["True", "False"])
    assert destinations("check", own).out == f"{own} works\n"
    assert destinations("change", own, "--required", "--no-default").out == f"changed {own}\n"
    [record] = json.loads(destinations("list", "--json").out)
    assert (record["required"], record["default"], record["name"]) == (True, False, "archive")
    assert record["region"] == "eu-central-1"
    rotated = json.loads(destinations("rotate", own, *destinations.key(), "--json").out)
    assert (rotated["version"], rotated["check"]["works"]) == (2, True)
    assert destinations("delete", own).out == f"deleted {own}\n"
    assert destinations("list").lines == []


def test_what_cannot_work_is_refused_with_a_reason(destinations: Destinations) -> None:
    own = destinations.add().out.split()[1]
    for words, message in (
        (("add", "https://media", *destinations.key()), "`url` must be"),
        (("change", own), "Give what is to be changed"),
        (("change", own, "--path", "always.png"), "must contain `{request_id}`"),
        (("check", "dst_x"), "No such destination"),
        (("delete", own, "--org", "org_other"), "No such organization: org_other"),
    ):
        ended = destinations(*words)
        assert (ended.status, message in ended.err) == (1, True), ended
    destinations.secret.write_text("another-secret-that-is-not-the-one")
    assert "No file could be written" in destinations("rotate", own, *destinations.key()).err
    destinations.secret.write_text("  \n")
    assert "no secret in the file" in destinations("rotate", own, *destinations.key()).err


def test_a_bucket_that_does_not_answer_any_more_fails_the_check(destinations: Destinations, data_folder: Path) -> None:
    own = destinations.add().out.split()[1]
    refused = penstock("destinations", "check", own, "--data", data_folder)  # the gateway may not reach it
    assert (refused.status, f"{own} does not work: " in refused.out) == (1, True), refused
    assert destinations("list").lines[0][-1]
