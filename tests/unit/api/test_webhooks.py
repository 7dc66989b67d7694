"""The webhook secret over HTTP."""

from pathlib import Path

from tests.api.running import running


async def test_the_webhook_secret_is_created_once_and_not_cached(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        response = await here.get("/v1/webhooks/secret")
        assert response.json["key"].startswith("whsec_")
        assert response.headers["cache-control"] == "no-store"
        assert (await here.get("/v1/webhooks/secret")).json == response.json
        assert (await here.get("/v1/webhooks/secret", here.theirs)).json != response.json
