"""The page that says where a file comes from, and the badge on what has Content Credentials."""

from pathlib import Path

import pytest
from PIL import Image

from tests.browser.chromium import Browser, sign_in
from tests.signed_files import picture, signed_by_vendor
from tests.stories.processes import Installation, Serving

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]


def test_a_file_of_the_gateway_and_a_foreign_one_are_told_apart(
    served: Serving, browser: Browser, tmp_path: Path
) -> None:
    body = {"model": "atelier/sketch", "prompt": "a pear", "size": "256x256"}
    made = served.call("POST", "/compat/v1/images/generations", body).json
    [record] = served.call("GET", "/v1/requests").json["data"]
    path = record["outputs"][0]["url"].removeprefix(served.url)
    (tmp_path / "ours.png").write_bytes(served.call("GET", path).body)
    Image.new("RGB", (64, 64), (40, 120, 160)).save(tmp_path / "foreign.png")

    sign_in(browser, served.url, served.key, "verify")
    browser.until(lambda: browser.has("input[type=file]"), "no file can be chosen")
    browser.type("input[type=file]", str(tmp_path / "ours.png"))
    browser.until(lambda: browser.text("#verdict") == "Made here", "its own file is not known")
    assert made["id"] in browser.text("main")
    assert "Holds, not on the trust list" in browser.text("main"), "each statement says whether it holds"
    browser.type("input[type=file]", str(tmp_path / "foreign.png"))
    browser.until(lambda: browser.text("#verdict") == "No credentials", "a foreign file is not told apart")

    browser.go(f"requests/{made['id']}")
    browser.until(lambda: browser.has("details.credentials"), "the badge is not shown")
    browser.click("details.credentials summary")
    assert "Signed by this gateway" in browser.text("details.credentials")
    assert "Kept until" in browser.text("#came-back")
    assert browser.errors() == []


def test_anybody_verifies_a_file_without_a_key(story: Installation, browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "theirs.png").write_bytes(signed_by_vendor(picture("png"), "image/png"))
    with story.serving(PENSTOCK_PUBLIC_VERIFY="true") as served:
        browser.open(f"{served.url}/verify")
        browser.until(lambda: browser.has("input[type=file]"), "no file can be chosen")
        browser.type("input[type=file]", str(tmp_path / "theirs.png"))
        browser.until(lambda: browser.text("#verdict") == "Marked as made by a model", "the file is not read")
        assert browser.errors() == []


def test_an_unknown_page_says_so(served: Serving, browser: Browser) -> None:
    sign_in(browser, served.url, served.key, "nonsense")
    browser.until(lambda: browser.text("main h1") == "Page not found", "it shows another page")
