"""Callbacks of providers over HTTP: short bodies, no key, and the same refusal for every bad token."""

from pathlib import Path

from penstock.api.asgi import AsgiApp
from tests.api.accounts import opened
from tests.api.raw_http import serving


async def test_every_callback_without_a_valid_token_gets_the_same_response(tmp_path: Path) -> None:
    async with opened(tmp_path) as gateway, serving(AsgiApp(gateway), gateway.settings) as served:
        bodies = set()
        for path in ("/callbacks/fal/x", "/callbacks/nobody/x", "/callbacks/fal/account", "/callbacks/fal/att_1-sig"):
            response = await served.call("POST", path, body=b"{}")
            assert response.status == 403
            bodies.add(response.body)
        assert len(bodies) == 1


async def test_a_callback_body_is_limited(tmp_path: Path) -> None:
    async with opened(tmp_path) as gateway, serving(AsgiApp(gateway), gateway.settings) as served:
        assert (await served.call("POST", "/callbacks/fal/x", body=b"x" * (1024**2 + 1))).status == 413


async def test_a_callback_body_may_have_any_content_type(tmp_path: Path) -> None:
    """The body is not parsed unless the provider needs it."""
    async with opened(tmp_path) as gateway, serving(AsgiApp(gateway), gateway.settings) as served:
        token = f"att_1-{gateway.media._vault.sign('callback' + chr(10) + 'fal' + chr(10) + 'att_1')}"
        for kind in ("application/json", "text/plain", "application/x-www-form-urlencoded"):
            headers = {"content-type": kind}
            response = await served.call("POST", f"/callbacks/fal/{token}", body=b"\xff not json", headers=headers)
            assert (response.status, response.body) == (204, b"")
