"""Votes over HTTP: without a key, by the link of a trial only, with nothing that names a model."""

from pathlib import Path
from typing import Any

import pytest

from penstock.api import rates
from tests.api.raw_http import RawResponse, Server
from tests.api.running import running
from tests.unit.trials.trial_calls import NAMES, SMALL_TRIAL


async def ask(served: Server, path: str, **body: Any) -> RawResponse:
    """A call of a browser that is signed in nowhere."""
    return await served.call("POST", path, key=None, body=body)


async def test_a_link_is_made_shown_once_and_revoked_by_its_organization_only(tmp_path: Path) -> None:
    async with running(tmp_path, models=NAMES) as here:
        key = here.mine.plain.key
        made = await here.served.call("POST", "/v1/trials", key=key, body=SMALL_TRIAL)
        path = f"/v1/trials/{made.json['id']}"
        for method in ("POST", "DELETE"):
            theirs = await here.served.call(method, f"{path}/link", key=here.theirs.plain.key, body={})
            assert (theirs.status, theirs.code) == (404, "NOT_FOUND")
        link = await here.served.call("POST", f"{path}/link", key=key, body={"expires_in_days": 2})
        assert (link.status, link.headers["cache-control"]) == (200, "no-store")
        shown = (await here.get(path)).json["link"]
        assert shown == {"expires_at": link.json["expires_at"], "shows_prompts": True}
        token = link.json["url"].partition("#")[2]
        pair = await ask(here.served, "/vote/pair", link=token)
        assert (pair.status, pair.json["pair"], pair.json["is_running"]) == (200, None, True)
        assert not {"etag", "server", "set-cookie"} & pair.headers.keys()
        assert (await here.served.call("DELETE", f"{path}/link", key=key)).status == 204
        assert (await here.get(path)).json["link"] is None
        assert (await ask(here.served, "/vote/pair", link=token)).code == "NOT_FOUND"
        too_long = await here.served.call("POST", f"{path}/link", key=key, body={"expires_in_days": 91})
        assert (too_long.status, too_long.json["error"]["param"]) == (400, "expires_in_days")


async def test_what_strangers_send_is_short_and_checked(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        assert (await ask(here.served, "/vote/pair", link="x" * 5000)).status == 413
        for path, body, param in (
            ("/vote/pair", {}, "link"),
            ("/vote/pair", {"link": "x" * 129}, "link"),
            ("/vote/pair", {"link": "x", "voter": "me"}, "voter"),
            ("/vote", {"pair": "x", "choice": "first"}, "choice"),
        ):
            refused = await ask(here.served, path, **body)
            assert (refused.status, refused.json["error"]["param"]) == (400, param)
        assert (await ask(here.served, "/vote/pair", link="x")).code == "NOT_FOUND"
        assert (await ask(here.served, "/vote", pair="x", choice="left")).code == "PERMISSION_DENIED"
        assert (await here.served.call("GET", "/vote/files/x", key=None)).code == "PERMISSION_DENIED"
        page = await here.served.call("GET", "/vote", key=None)
        assert (page.status, page.headers["referrer-policy"]) == (200, "no-referrer")


async def test_an_address_may_make_so_many_calls_a_minute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "VOTE_CALLS_PER_MINUTE", 2)
    async with running(tmp_path) as here:
        assert [(await ask(here.served, "/vote/pair", link="x")).status for _ in range(3)] == [404, 404, 429]
        limited = await here.served.call("GET", "/vote/files/x", key=None)
        assert (limited.code, limited.headers["retry-after"]) == ("RATE_LIMITED", "60")
        assert (await here.get("/v1/trials")).status == 200
