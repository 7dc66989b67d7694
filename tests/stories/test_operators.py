"""What operators do while the gateway runs, and the errors they get."""

import subprocess
import sys
import threading

import openai
import pytest

from tests.fake_providers import faults
from tests.fake_providers.scripted import ScriptedProvider
from tests.gateway import sqlite_only
from tests.stories.processes import Installation, Serving, until


def works(served: Serving, key: str) -> bool:
    return served.call("GET", "/v1/balance", key=key).status == 200


def test_keys_are_created_and_revoked_while_the_gateway_runs(story: Installation, served: Serving) -> None:
    """A key of the command line works at once, and is refused soon after it is revoked."""
    made = story.penstock("keys", "create", "--name", "for ann")
    assert made.status == 0, made.err
    key = made.out.strip()
    assert works(served, key)
    listed = [line.split("\t") for line in story.penstock("keys", "list").out.splitlines()]
    (mine,) = [row for row in listed if row[1] == "for ann"]
    assert (mine[2], mine[3]) == (key[-4:], "active")
    assert works(served, key)
    revoked = story.penstock("keys", "revoke", mine[0])
    assert revoked.status == 0
    until(lambda: not works(served, key))
    assert works(served, served.key), "other keys go on working"
    assert story.penstock("keys", "revoke", "key_nonesuch").status == 1


@sqlite_only
def test_organizations_and_their_credit(story: Installation, served: Serving) -> None:
    org = story.penstock("orgs", "create", "--name", "Second").out.strip()
    key = story.penstock("keys", "create", "--org", org).out.strip()
    body = {"model": "image-1", "prompt": "a pear"}
    assert served.call("POST", "/compat/v1/images/generations", body, key=key).status == 402
    assert story.penstock("credit", "add", "--org", org, "--usd", "0.05").out == "available: $0.05\n"
    assert served.call("POST", "/compat/v1/images/generations", body, key=key).status == 200
    assert served.call("GET", "/v1/balance", key=key).json["available"]["amount"] == 0.01
    rows = [line.split("\t") for line in story.penstock("orgs", "list").out.splitlines()]
    assert [row[1:4] for row in rows if row[0] == org] == [["Second", "prepaid", "0.01"]]


def test_a_stopping_gateway_finishes_running_calls(story: Installation, lab: ScriptedProvider) -> None:
    with story.serving() as served:
        release = threading.Event()
        lab.images.next(faults.waiting(release))
        made: list[object] = []

        def ask() -> None:
            with openai.OpenAI(base_url=served.base_url, api_key=served.key, max_retries=0) as client:
                made.append(client.images.generate(model="image-1", prompt="a pear"))

        asking = threading.Thread(target=ask)
        asking.start()
        until(lambda: len(lab.images) == 1)
        served.process.terminate()
        until(lambda: served.call("GET", "/readyz").status == 503)
        refused = served.call("POST", "/compat/v1/images/generations", {"model": "image-1", "prompt": "x"})
        assert (refused.status, refused.headers["x-should-retry"]) == (503, "true")
        release.set()
        asking.join()
        assert served.process.wait(30) == 0
        assert len(made) == 1
    assert len(lab.invoice) == 1
    assert story.penstock("audit").status == 0


@sqlite_only
def test_a_second_server_on_a_data_folder_is_refused(story: Installation, served: Serving) -> None:
    command = [sys.executable, "-m", "penstock", "serve", "--port", "0", "--data", str(story.data)]
    second = subprocess.run(command, env=story.environment, capture_output=True, text=True, timeout=60, check=False)
    assert second.returncode == 1
    assert "another gateway is running" in second.stderr
    assert works(served, served.key)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("serve", "--host", "0.0.0.0"), "without TLS"),  # noqa: S104
        (("keys", "revoke", "key_x"), "No such key"),
        (("credit", "add", "--usd", "-5"), "above 0"),
        (("keys", "create", "--org", "org_nonesuch"), "No such organization"),
    ],
)
@sqlite_only
def test_operator_errors_are_one_line(story: Installation, arguments: tuple[str, ...], message: str) -> None:
    story.penstock("init")
    ended = story.penstock(*arguments)
    assert ended.status == 1
    assert message in ended.err
    assert len(ended.err.splitlines()) == 1, ended.err
    assert ended.out == ""


@sqlite_only
def test_a_secret_that_others_can_read_is_refused(story: Installation) -> None:
    assert story.penstock("init").status == 0
    (story.data / "secret.key").chmod(0o644)
    ended = story.penstock("keys", "list")
    assert ended.status == 1
    assert "chmod 600" in ended.err
