"""The files of the dashboard: served without a key, with an etag and a strict security policy."""

import re
from importlib.resources import files
from pathlib import Path

from penstock.api.asgi import AsgiApp
from penstock.api.pages import PARTS
from tests.api.accounts import opened
from tests.api.raw_http import serving

STATIC = Path(str(files("penstock.web"))) / "static"
KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: https: http:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


async def test_files(tmp_path: Path) -> None:
    async with opened(tmp_path) as gateway, serving(AsgiApp(gateway), gateway.settings) as served:
        for path in ("/", *(f"/dashboard/{name}" for name in sorted(PARTS))):
            response = await served.call("GET", path)
            kind = KINDS[path.rpartition(".")[2] if "." in path else "html"]
            assert (response.status, response.headers["content-type"]) == (200, f"{kind}; charset=utf-8"), path
            assert response.headers["content-security-policy"] == POLICY
            assert response.headers["x-content-type-options"] == "nosniff"
            again = await served.call("GET", path, headers={"if-none-match": response.headers["etag"]})
            assert (again.status, again.body) == (304, b"")
            assert (await served.call("HEAD", path)).headers["content-length"] == str(len(response.body))
            assert (await served.call("POST", path, body={})).status == 405


async def test_other_file_names_are_not_found(tmp_path: Path) -> None:
    async with opened(tmp_path) as gateway, serving(AsgiApp(gateway), gateway.settings) as served:
        for name in ("", "dashboard.html", "..%2f__init__.py", "..%2fstatic%2fkeys.js", "Keys.js", "keys.js%00"):
            response = await served.call("GET", f"/dashboard/{name}")
            assert (response.status, response.code) == (404, "NOT_FOUND"), name


def test_every_file_is_served_and_short() -> None:
    assert {path.name for path in STATIC.iterdir()} == {"dashboard.html", *PARTS}
    assert [path.name for path in STATIC.iterdir() if len(path.read_text().splitlines()) >= 400] == []


def test_the_page_has_no_inline_scripts_or_styles() -> None:
    """The security policy forbids inline code; every file that the page names is served."""
    text = (STATIC / "dashboard.html").read_text()
    assert "style=" not in text
    assert re.search(r"\son\w+=", text) is None
    assert text.count("<script") == 1
    assert set(re.findall(r'"/dashboard/([^"]+)"', text)) == {"dashboard.css", "dashboard.js"}


def test_scripts_import_existing_names_and_use_existing_elements() -> None:
    ids = re.findall(r'\sid="([^"]+)"', (STATIC / "dashboard.html").read_text())
    assert len(ids) == len(set(ids))
    for path in STATIC.glob("*.js"):
        text = path.read_text()
        assert set(re.findall(r'from "\./([^"]+)"', text)) <= PARTS, path.name
        named = re.findall(r'\bat\("([^"]+)"\)|\bsay\("([^"]+)"', text)
        assert {model or other for model, other in named} <= set(ids), path.name


def test_scripts_insert_text_and_never_markup() -> None:
    forbidden = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|DOMParser")
    assert [path.name for path in STATIC.glob("*.js") if forbidden.search(path.read_text())] == []
