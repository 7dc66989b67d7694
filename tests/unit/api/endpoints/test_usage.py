"""Usage and failures over HTTP."""

from pathlib import Path

from tests.api.running import running


async def test_usage_and_failures_are_those_of_the_callers_organization(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        made = await here.refused(3)
        usage = (await here.get("/v1/usage?group_by=kind")).json
        assert (usage["total"]["requests"], usage["total"]["rejected"], usage["total"]["success_rate"]) == (3, 3, None)
        assert [(group["group"], group["requests"]) for group in usage["groups"]] == [("image", 3)]
        assert 30 <= len(usage["data"]) <= 31
        assert sum(entry["requests"] for entry in usage["data"]) == 3
        by_key = (await here.get("/v1/usage?group_by=key&bucket=month")).json["groups"]
        assert [group["group"] for group in by_key] == [here.mine.plain.id]
        [failure] = (await here.get("/v1/usage/failures")).json["data"]
        assert (failure["count"], failure["error_code"], failure["model"]) == (3, "MODEL_NOT_FOUND", "no/such")
        assert failure["last_request_id"] == made[0]
        assert "does not exist" in failure["message"]
        for path in ("/v1/usage", "/v1/usage?group_by=model", "/v1/usage/failures"):
            theirs = await here.get(path, here.theirs)
            assert theirs.json.get("total", {"requests": 0})["requests"] == 0
            assert not theirs.json.get("groups", theirs.json["data"] if "failures" in path else [])


async def test_filters_and_times_apply(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        made = await here.refused(3)
        second = (await here.get(f"/v1/requests/{made[1]}")).json["created_at"]
        for query, count in (
            (f"created_after={second}", 2),
            (f"created_before={second}", 2),
            ("created_after=1970-01-01&bucket=month", 3),
            ("created_before=9999-12-31&bucket=hour", 0),
            ("model=no/such", 3),
            ("model=other", 0),
            ("kind=image", 3),
            ("kind=chat", 0),
            ("user=ann", 0),
            (f"key_id={here.mine.plain.id}", 3),
            (f"key_id={here.theirs.plain.id}", 0),
            ("provider=lab", 0),
        ):
            found = await here.get(f"/v1/usage?{query}")
            assert (found.status, found.json["total"]["requests"]) == (200, count), query
            if "bucket" not in query:
                failures = (await here.get(f"/v1/usage/failures?{query}")).json["data"]
                assert sum(failure["count"] for failure in failures) == count, query


async def test_bad_parameters_are_named(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        for path, param in (
            ("/v1/usage?bucket=year", "bucket"),
            ("/v1/usage?bucket=hour&created_after=2020-01-01", "bucket"),
            ("/v1/usage?group_by=colour", "group_by"),
            ("/v1/usage?created_after=2024-01-01&created_before=2023-01-01", "created_before"),
            ("/v1/usage?created_after=9999-12-31", "created_before"),
            ("/v1/usage?limit=3", "limit"),
            ("/v1/usage/failures?limit=0", "limit"),
            ("/v1/usage/failures?bucket=day", "bucket"),
        ):
            response = await here.get(path)
            assert (response.status, response.json["error"]["param"]) == (400, param), path
