"""The dashboard's files: open to anybody, known again, and locked down."""

import re
from pathlib import Path

import pytest

from penstock.api.edge import Edge
from tests.api.gateways import opened
from tests.api.talk import serving


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/", "text/html"), ("/dashboard.css", "text/css"), ("/dashboard.js", "text/javascript")],
)
async def test_files(tmp_path: Path, path: str, kind: str) -> None:
    async with opened(tmp_path) as gateway, serving(Edge(gateway), gateway.settings) as served:
        said = await served.ask("GET", path)
        assert (said.status, said.headers["content-type"]) == (200, f"{kind}; charset=utf-8")
        assert "script-src 'self'" in said.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in said.headers["content-security-policy"]
        assert said.headers["x-content-type-options"] == "nosniff"
        again = await served.ask("GET", path, headers={"if-none-match": said.headers["etag"]})
        assert (again.status, again.body) == (304, b"")
        assert (await served.ask("HEAD", path)).headers["content-length"] == str(len(said.body))
        assert (await served.ask("POST", path, body={})).status == 405


async def test_nothing_is_written_into_the_page(tmp_path: Path) -> None:
    """Its policy forbids inline code, so none may be there; and what it names is served."""
    async with opened(tmp_path) as gateway, serving(Edge(gateway), gateway.settings) as served:
        text = (await served.ask("GET", "/")).body.decode()
    assert "style=" not in text
    assert re.search(r"\son\w+=", text) is None
    assert text.count("<script") == 1
    for name in ("/dashboard.css", "/dashboard.js"):
        assert f'"{name}"' in text
