"""What was made is kept until the generation ends, with all that its bill and its record need."""

from typing import Any

from tests.fake_bucket import fake_bucket
from tests.gateway import OpenGateway, failpoint_raises, sqlite_only, two_providers


@sqlite_only
async def test_tokens_and_lines_of_the_bill_survive_a_restart(open_gateway: OpenGateway) -> None:
    options: dict[str, Any] = {"egress_allow_cidrs": ("127.0.0.0/8",)}
    async with two_providers() as labs, fake_bucket() as bucket:
        labs[0].usage = {"input_tokens": 11, "output_tokens": 22, "total_tokens": 33}
        ids = []
        for is_interrupted in (False, True):
            async with open_gateway(labs=labs, **options) as running:
                destination = await bucket.add_to(running)
                if not is_interrupted:
                    ids.append((await running.image(deliver_to=destination))["id"])
                    continue
                with failpoint_raises("deliver.after_made"):
                    ids.append((await running.video(deliver_to=destination)).json["id"])
                    await running.wait_until_idle()
                [row] = await running.rows("SELECT made FROM generations WHERE made IS NOT NULL")
                assert b"sk-" not in bytes(row["made"])
        async with open_gateway(labs=labs, **options) as running:
            records = [await running.wait_for_request(request_id) for request_id in ids]
            assert [bool(record["cost_lines"]) for record in records] == [True, True]
            assert [record["provider"] for record in records] == ["lab", "lab"]
            assert records[0]["output_tokens"] == 22
            assert await running.rows("SELECT id FROM generations WHERE made IS NOT NULL") == []
