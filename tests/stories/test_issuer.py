"""Signing in with a real, strict OpenID Connect issuer: npm's oidc-provider; run by `make test-node`."""

import asyncio
import http.cookiejar
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPCookieProcessor, HTTPRedirectHandler, build_opener

import pytest

from penstock.api.asgi import AsgiApp
from penstock.people.oidc import Login, SignInFailed, new_login
from penstock.people.sign_in import SignIn
from penstock.store.base import Dialect
from tests.api.accounts import first_account, opened
from tests.api.raw_http import Server, serving

pytestmark = [pytest.mark.node, pytest.mark.timeout(300)]
HERE = Path(__file__).with_name("issuer")
PUBLIC = "https://media.example"
CALLBACK = f"{PUBLIC}/auth/callback"
SECRET = "issuer-canary-5711"


@pytest.fixture
def dialect() -> Dialect:
    """The database makes no difference here."""
    return "sqlite"


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of the issuer, of the locked version."""
    folder = tmp_path_factory.mktemp("issuer")
    for file in HERE.iterdir():
        shutil.copy(file, folder)
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    made = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    environment = {**os.environ, "REDIRECT_URI": CALLBACK}
    with subprocess.Popen(
        ["node", "issuer.mjs"],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.terminate()


@asynccontextmanager
async def running(folder: Path, issuer: str, secret: str = SECRET) -> AsyncIterator[tuple[Server, SignIn]]:
    roles = [{"role": "admin", "org": "default", "group": "leads"}]
    table = {"issuer": issuer, "client_id": "penstock", "scopes": "openid email profile groups", "roles": roles}
    async with opened(folder, public_url=PUBLIC, oidc=table) as gateway:
        assert isinstance(gateway.sign_in, SignIn)
        gateway.sign_in._issuer._secret = secret
        await first_account(gateway)
        async with serving(AsgiApp(gateway), gateway.settings) as served:
            yield served, gateway.sign_in


class Stop(HTTPRedirectHandler):
    """Follows redirects of the issuer, and not the one back to the gateway."""

    def redirect_request(self, req, fp, code, msg, headers, newurl):  # type: ignore[no-untyped-def]
        if newurl.startswith(CALLBACK):
            return None
        return super().redirect_request(req, fp, code, msg, headers, newurl)


async def browse(url: str) -> dict[str, str]:
    """What the browser brings back from the issuer."""

    def follow() -> str:
        try:
            with build_opener(HTTPCookieProcessor(http.cookiejar.CookieJar()), Stop).open(url, timeout=30) as page:
                raise AssertionError(f"the issuer shows a page: {page.read()[:200]!r}")
        except HTTPError as stopped:
            with stopped:
                return str(stopped.headers["location"])

    location = await asyncio.to_thread(follow)
    assert location.startswith(CALLBACK), location
    return dict(pair.split("=", 1) for pair in urlsplit(location).query.split("&"))


async def test_a_person_signs_in_with_a_strict_issuer(tmp_path: Path, issuer: str) -> None:
    async with running(tmp_path, issuer) as (served, _):
        begun = await served.call("GET", "/auth/login")
        answer = await browse(begun.headers["location"])
        query = "&".join(f"{name}={value}" for name, value in answer.items())
        cookie = {"cookie": begun.headers["set-cookie"].partition(";")[0]}
        back = await served.call("GET", f"/auth/callback?{query}", headers=cookie)
        assert back.headers["location"] == "/"
        session = {"cookie": back.headers["set-cookie"].partition(";")[0]}
        found = (await served.call("GET", "/v1/session", headers=session)).json
        assert (found["user"]["email"], found["key"]["scopes"]) == ("anna@studio.example", ["admin"])
        again = await served.call("GET", f"/auth/callback?{query}", headers=cookie)
        assert again.headers["location"] == "/#/?refused=failed", "a code is good once"


@pytest.mark.parametrize("wrong", ["verifier", "secret"])
async def test_a_strict_issuer_refuses_what_is_not_ours(tmp_path: Path, issuer: str, wrong: str) -> None:
    async with running(tmp_path, issuer, "another" if wrong == "secret" else SECRET) as (_, sign_in):
        login = new_login("/", 0)
        answer = await browse(await sign_in._issuer.sign_in_url(login, CALLBACK))
        answer["iss"] = issuer
        stolen = Login(login.state, login.nonce, "x" * 43 if wrong == "verifier" else login.verifier, "/", 0)
        with pytest.raises(SignInFailed, match=r"status 40[01]"):
            await sign_in._issuer.identify(stolen, answer, CALLBACK)
