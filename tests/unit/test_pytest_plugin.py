"""The pytest fixture, used by a test file in a pytest session of its own: first it records, then it replays."""

from importlib.metadata import entry_points

import pytest

from penstock import pytest_plugin

TEST = """
import base64, json, urllib.request

def call(penstock, body):
    request = urllib.request.Request(
        penstock.base_url + "/images/generations",
        data=json.dumps(body).encode(),
        headers={"authorization": f"Bearer {penstock.api_key}", "content-type": "application/json"},
    )
    with urllib.request.urlopen(request) as response:
        return response.headers["x-service-replay-status"], json.load(response)

def test_image(penstock):
    status, result = call(penstock, {"model": "atelier/sketch", "prompt": "a fox", "size": "64x64",
                                     "response_format": "b64_json"})
    assert base64.b64decode(result["data"][0]["b64_json"]).startswith(b"\\x89PNG")
    assert result["metadata"]["provider"] == "atelier"
    print("status:", status)
"""


def run(pytester: pytest.Pytester, *options: str) -> str:
    """Run the test file in this process, whose modules are imported already, with a pytest session of its own."""
    plugins = ("--disable-plugin-autoload", "-p", "penstock.pytest_plugin", "-p", "no:cacheprovider")
    return str(pytester.runpytest_inprocess("-q", "-s", *plugins, *options, "test_fox.py").stdout)


def test_recordings_are_written_beside_the_test_and_replayed(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_fox=TEST)
    missing = run(pytester)
    assert "1 failed" in missing
    assert "404" in missing
    assert "status: recorded" in (recorded := run(pytester, "--penstock-record")), recorded
    folder = pytester.path / "recordings" / "test_fox"
    names = sorted(path.suffix for path in folder.iterdir())
    assert names == [".json", ".png"]
    assert "status: replayed" in (replayed := run(pytester)), replayed
    assert sorted(path.suffix for path in folder.iterdir()) == names


def test_pytest_finds_the_fixture_where_the_package_is_installed() -> None:
    (found,) = entry_points(group="pytest11", name="penstock")
    assert found.value == pytest_plugin.__name__


def test_a_test_may_have_a_cassette_of_its_own(pytester: pytest.Pytester) -> None:
    """Its folder is named by the test, also if that has parameters."""
    parametrized = "import pytest\n@pytest.mark.parametrize('word', ['a/b'])\ndef test_image(word, penstock_cassette)"
    test = TEST.replace("def test_image(penstock)", parametrized).replace(
        "call(penstock, {", "call(penstock_cassette, {"
    )
    pytester.makepyfile(test_fox=test)
    assert "404" in run(pytester)
    assert "status: recorded" in (recorded := run(pytester, "--penstock-record")), recorded
    folder = pytester.path / "recordings" / "test_fox" / "test_image-a-b"
    assert sorted(path.name for path in folder.iterdir()) == ["01-image-0.png", "01-image.json"]
    assert "status: replayed" in (replayed := run(pytester)), replayed


def test_the_gateway_starts_without_what_only_terminals_need(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_fox="import sys\n\ndef test_start(penstock):\n    assert 'rich' not in sys.modules\n")
    plugins = ("--disable-plugin-autoload", "-p", "penstock.pytest_plugin", "-p", "no:cacheprovider")
    pytester.runpytest_subprocess("-q", *plugins, "test_fox.py").assert_outcomes(passed=1)
