"""Which files the documentation consists of, and where each is served."""

from pathlib import Path

from penstock.web import manual

ROOT = Path(__file__).parents[3]


def test_each_file_has_a_url_of_its_own() -> None:
    urls = manual.urls()
    assert len(set(urls.values())) == len(urls)
    assert urls["docs/README.md"] == "/docs"
    assert urls["docs/images.md"] == "/docs/images"
    assert urls["docs/decisions/README.md"] == "/docs/decisions"
    assert urls["docs/decisions/layout.md"] == "/docs/decisions/layout"
    assert urls["docs/images/overview.webp"] == "/docs/images/overview.webp"
    assert urls["SECURITY.md"] == "/docs/security"
    assert urls["deploy/proxies/nginx.conf"] == "/docs/deploy/proxies/nginx.conf"


def test_every_page_of_the_repository_is_part_of_it() -> None:
    pages = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert pages <= manual.urls().keys()


def test_pages_are_found_with_and_without_their_ending() -> None:
    for name in ("images", "images.md"):
        assert manual.paths()[name] == "docs/images.md"
    assert manual.paths()[""] == manual.paths()["README.md"] == "docs/README.md"
    assert "README" not in manual.paths()


def test_links_lead_to_pages_of_the_gateway() -> None:
    assert manual.linked_url("docs/images.md", "videos.md#webhooks") == "/docs/videos#webhooks"
    assert manual.linked_url("docs/decisions/layout.md", "../tour.md") == "/docs/tour"
    assert manual.linked_url("SECURITY.md", "docs/deploy.md") == "/docs/deploy"
    assert manual.linked_url("docs/images.md", "#n") == "#n"
    assert manual.linked_url("docs/images.md", "https://example.com/a.md") == "https://example.com/a.md"
    assert manual.linked_url("docs/tour.md", "../src/penstock/gateway.py") is None
    assert manual.linked_url("docs/tour.md", "../../../etc/passwd") is None
