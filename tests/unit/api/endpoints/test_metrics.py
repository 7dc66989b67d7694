"""Metrics over HTTP, after real calls."""

from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from penstock.api.asgi import AsgiApp
from tests.api.accounts import first_account, opened
from tests.api.http_calls import served_api
from tests.api.raw_http import RawResponse, serving
from tests.gateway import OpenGateway, sqlite_only

BODY = {"model": "atelier/sketch", "prompt": "a pear", "size": "64x64"}
CHAT = {"model": "atelier/echo", "messages": [{"role": "user", "content": "hello"}]}


def values(response: RawResponse) -> dict[tuple[str, ...], float]:
    assert response.status == 200
    assert response.headers["content-type"].startswith("text/plain; version=")
    found = [sample for family in text_string_to_metric_families(response.body.decode()) for sample in family.samples]
    return {(sample.name, *sample.labels.values()): sample.value for sample in found}


async def test_the_time_until_the_certificate_expires_is_told(tmp_path: Path) -> None:
    async with opened(tmp_path) as gateway:
        key = (await first_account(gateway)).admin.key
        async with serving(AsgiApp(gateway), gateway.settings) as served:
            found = values(await served.call("GET", "/metrics", key=key))
        assert gateway.sealer.signing
        expected = gateway.sealer.signing.expires_at.timestamp() - gateway.clock.now_ms() / 1000
    assert abs(found[("penstock_provenance_certificate_expires_seconds",)] - expected) < 3600


async def test_metrics_count_calls(tmp_path: Path) -> None:
    async with opened(tmp_path, works=True, child_processes=True) as gateway:
        account = await first_account(gateway)
        async with serving(AsgiApp(gateway), gateway.settings) as served:
            key = account.admin.key
            await served.call("POST", "/compat/v1/images/generations", key=key, body=BODY)
            await served.call("POST", "/compat/v1/chat/completions", key=key, body=CHAT)
            await served.call("POST", "/compat/v1/chat/completions", key=key, body={**CHAT, "stream": True})
            await served.call("GET", "/nobody/knows/this", key=key)
            await served.call("GET", "/v1/requests/req_of-somebody", key=key)
            found = values(await served.call("GET", "/metrics", key=key))
    assert found["penstock_requests_total", "POST", "/compat/v1/images/generations", "200"] == 1
    assert found["penstock_requests_total", "POST", "/compat/v1/chat/completions", "200"] == 2
    assert found["penstock_requests_total", "GET", "/v1/requests/{request_id}", "404"] == 1
    assert found["penstock_requests_total", "*", "unknown", "404"] == 1
    assert found["penstock_generations_total", "atelier", "completed", "image"] == 1
    assert found["penstock_generations_total", "atelier", "completed", "chat"] == 2
    assert found["penstock_cost_usd_total", "atelier", "completed", "image"] == 0.001
    assert found["penstock_provider_calls_total", "success", "atelier"] == 3
    assert found["penstock_webhook_messages", "waiting"] == 0
    assert found["penstock_store_write_seconds_count",] > 0
    assert found["penstock_pool_workers",] >= 1
    assert not any("nobody" in word or "somebody" in word for name in found for word in name)


@sqlite_only
async def test_metrics_tell_of_old_jobs_old_messages_and_low_balances(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway, worker=False, alert_balance_usd="9.95") as api:
        await api.video()
        api.running.clock.advance(60)
        second = (await api.video(webhook_url="https://receiver.example/")).json["id"]
        before = values(await api.call("GET", "/metrics"))
        await api.running.create_caller_in_new_org("0.50")
        await api.running.cancel(second)  # which adds a message that no worker delivers
        api.running.clock.advance(30)
        after = values(await api.call("GET", "/metrics"))
    assert (before["penstock_jobs", "queued"], before["penstock_job_oldest_seconds", "queued"]) == (2, 60)
    assert (before["penstock_low_balances",], before["penstock_webhook_oldest_seconds",]) == (1, 0)
    assert (after["penstock_jobs", "queued"], after["penstock_job_oldest_seconds", "queued"]) == (1, 90)
    assert (after["penstock_low_balances",], after["penstock_webhook_oldest_seconds",]) == (2, 30)


async def test_metrics_need_the_scope_for_them_which_allows_nothing_else(tmp_path: Path) -> None:
    async with opened(tmp_path) as gateway:
        account = await first_account(gateway)
        scraping = await gateway.keys.create_key(account.org_id, name="prometheus", scopes=["metrics"])
        async with serving(AsgiApp(gateway), gateway.settings) as served:
            assert (await served.call("GET", "/metrics")).status == 401
            assert (await served.call("GET", "/metrics", key=account.plain.key)).code == "PERMISSION_DENIED"
            assert (await served.call("GET", "/metrics", key=scraping.key)).status == 200
            assert (await served.call("GET", "/metrics", key=account.admin.key)).status == 200, "an operator's"
            for path in ("/v1/orgs", "/v1/settings", "/v1/providers", "/v1/alerts"):
                assert (await served.call("GET", path, key=scraping.key)).code == "PERMISSION_DENIED", path
            assert (await served.call("POST", "/v1/keys", key=scraping.key)).code == "PERMISSION_DENIED"
            for path in ("/v1/requests", "/v1/balance", "/v1/webhooks/secret", "/compat/v1/models"):
                assert (await served.call("GET", path, key=scraping.key)).code == "PERMISSION_DENIED", path
            image = await served.call("POST", "/compat/v1/images/generations", key=scraping.key)
            assert image.code == "PERMISSION_DENIED"
            shown = await served.call("GET", "/v1/key", key=scraping.key)
            assert shown.json["scopes"] == ["metrics"]


async def test_metrics_can_be_switched_off(tmp_path: Path) -> None:
    async with opened(tmp_path, metrics=False) as gateway:
        account = await first_account(gateway)
        async with serving(AsgiApp(gateway), gateway.settings) as served:
            assert (await served.call("GET", "/metrics", key=account.admin.key)).code == "NOT_FOUND"
