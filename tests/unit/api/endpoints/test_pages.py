"""The files of the dashboard: served without a key, with an etag and a strict security policy."""

import gzip
import hashlib
import json
import re
from importlib.resources import files
from pathlib import Path

from penstock import web
from penstock.api.asgi import AsgiApp
from tests.api.accounts import opened
from tests.api.raw_http import serving

STATIC = Path(str(files("penstock.web"))) / "static"
THIRD_PARTY = (STATIC / "third_party", Path(__file__).parents[3] / "browser" / "third_party")
OURS = sorted(
    path for path in STATIC.rglob("*") if path.suffix in (".js", ".css") and path.parent.name != "third_party"
)
KINDS = {"html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8",
         "svg": "image/svg+xml", "woff2": "font/woff2"}  # fmt: skip
LICENCES = {"MIT": "Permission is hereby granted, free of charge", "Apache-2.0": "Apache License",
            "OFL-1.1": "SIL OPEN FONT LICENSE Version 1.1", "MPL-2.0": "Mozilla Public License"}  # fmt: skip
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; connect-src 'self'; "
    "img-src 'self' data: blob: https: http:; media-src 'self' data: blob: https: http:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


async def test_files(tmp_path: Path) -> None:
    async with opened(tmp_path) as gateway, serving(AsgiApp(gateway), gateway.settings) as served:
        for path in (
            "/",
            *(f"/dashboard/{name}" for name in sorted(web.asset_names() - {"index.html", "verify.html"})),
        ):
            response = await served.call("GET", path)
            kind = KINDS[path.rpartition(".")[2] if "." in path else "html"]
            assert (response.status, response.headers["content-type"]) == (200, kind), path
            assert response.headers["content-security-policy"] == POLICY
            assert response.headers["x-content-type-options"] == "nosniff"
            again = await served.call("GET", path, headers={"if-none-match": response.headers["etag"]})
            assert (again.status, again.body) == (304, b"")
            assert (await served.call("HEAD", path)).headers["content-length"] == str(len(response.body))
            assert (await served.call("POST", path, body={})).status == 405


async def test_text_is_compressed_for_browsers_that_accept_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as gateway, serving(AsgiApp(gateway), gateway.settings) as served:
        plain = await served.call("GET", "/dashboard/app.js")
        small = await served.call("GET", "/dashboard/app.js", headers={"accept-encoding": "br, gzip"})
        assert "content-encoding" not in plain.headers
        assert (small.headers["content-encoding"], small.headers["vary"]) == ("gzip", "accept-encoding")
        assert gzip.decompress(small.body) == plain.body


async def test_other_file_names_are_not_found(tmp_path: Path) -> None:
    names = ("", "index.html", "verify.html", "..%2f__init__.py", "../__init__.py", "pages/../app.js", "App.js",
             "app.js%00", "pages", "third_party/packages.json", "third_party/preact.LICENSE")  # fmt: skip
    async with opened(tmp_path) as gateway, serving(AsgiApp(gateway), gateway.settings) as served:
        for name in names:
            response = await served.call("GET", f"/dashboard/{name}")
            assert (response.status, response.code) == (404, "NOT_FOUND"), name


def test_all_files_together_are_small() -> None:
    sizes = {name: len(web.asset(name).gzipped or web.asset(name).body) for name in web.asset_names()}
    assert sum(sizes.values()) < 300_000, sizes


def test_scripts_and_styles_are_short_and_say_what_they_are_for() -> None:
    assert [path.name for path in OURS if len(path.read_text().splitlines()) > 400] == []
    assert [path.name for path in OURS if not re.match(r"// [A-Z].*\.\n|/\* [A-Z].*\. \*/\n", path.read_text())] == []


def test_the_page_has_no_inline_scripts_or_styles() -> None:
    """The security policy forbids inline code; every file that the page names is served."""
    for page in ("index.html", "verify.html"):
        text = (STATIC / page).read_text()
        assert "style=" not in text
        assert re.search(r"\son\w+=", text) is None
        assert text.count("<script") == 1
        assert set(re.findall(r'"/dashboard/([^"]+)"', text)) <= web.asset_names()


def test_every_script_is_imported_and_every_import_exists() -> None:
    imported = {
        STATIC / "app.js",
        STATIC / "docs" / "page.js",
        STATIC / "docs" / "api.js",
        STATIC / "public_verify.js",
        STATIC / "vote.js",
    }  # those that pages name
    for path in (path for path in OURS if path.suffix == ".js"):
        found = re.findall(r'(?:from |import\()"(\.[^"]+)"', path.read_text())
        imported |= {(path.parent / name).resolve() for name in found}
    scripts = {path.resolve() for path in STATIC.rglob("*.js")}
    assert imported == scripts, imported ^ scripts


def test_the_page_loads_all_its_scripts_at_once() -> None:
    """Without a preload a script is only found when the one that imports it has been read."""
    preloaded = set(re.findall(r'rel="modulepreload" href="/dashboard/([^"]+)"', (STATIC / "index.html").read_text()))
    needed, found = {"app.js"}, {"app.js"}
    while found:
        texts = {name: (STATIC / name).read_text() for name in found if not name.startswith("third_party/")}
        imports = {
            str(((STATIC / name).parent / source).resolve().relative_to(STATIC.resolve()))
            for name, text in texts.items()
            for source in re.findall(r'from "(\.[^"]+)"', text)
        }
        found = imports - needed
        needed |= found
    assert preloaded == needed - {"app.js"} | {"third_party/hooks.js"}, preloaded ^ needed


def test_every_imported_name_is_exported() -> None:
    missing = []
    for path in (path for path in OURS if path.suffix == ".js"):
        for names, source in re.findall(r'import \{([^}]+)\} from "(\.[^"]+)"', path.read_text()):
            target = (path.parent / source).resolve()
            if target.parent.name == "third_party":
                continue
            text = target.read_text()
            exported = set(re.findall(r"export (?:async )?(?:function\*?|const|class|let) (\w+)", text))
            exported |= {name.strip() for group in re.findall(r"export \{([^}]+)\}", text) for name in group.split(",")}
            wanted = {name.split(" as ")[0].strip() for name in names.split(",")}
            used = {name.split(" as ")[-1].strip() for name in names.split(",")}
            missing += [f"{path.name}: {name} of {source}" for name in wanted - exported]
            rest = path.read_text().replace(f"import {{{names}}}", "")
            missing += [f"{path.name}: unused {name}" for name in used if not re.search(rf"\b{name}\b", rest)]
    assert missing == []


def test_scripts_insert_text_and_never_markup() -> None:
    forbidden = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|DOMParser|dangerously"
    )
    assert [path.name for path in OURS if forbidden.search(path.read_text())] == []


def test_nothing_is_asked_of_another_host() -> None:
    """The URLs in our files are examples that a user replaces, and the namespace of SVG."""
    allowed = {"https://hooks.your-company.com/penstock", "http://www.w3.org/2000/svg"}
    found = {url for path in (*OURS, STATIC / "index.html", STATIC / "verify.html", STATIC / "icon.svg")
             for url in re.findall(r"https?://[\w.][^\s\"'`<>)]*", path.read_text())}  # fmt: skip
    assert found <= allowed


def test_third_party_files_are_those_of_the_published_packages() -> None:
    for folder in THIRD_PARTY:
        rows = json.loads((folder / "packages.json").read_text())
        listed = {"packages.json", *(row["file"] for row in rows), *(row["license_file"] for row in rows)}
        assert {path.name for path in folder.iterdir()} == listed
        for row in rows:
            text = (folder / row["file"]).read_bytes()
            for published, ours in row.get("changed", {}).items():
                assert text.count(ours.encode()) == 1
                text = text.replace(ours.encode(), published.encode())
            assert hashlib.sha256(text).hexdigest() == row["sha256"], row["file"]
            assert LICENCES[row["license"]] in (folder / row["license_file"]).read_text(), row["file"]
