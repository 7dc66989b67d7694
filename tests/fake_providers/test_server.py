"""Simulated providers route, remember, obey their script, and know who is calling."""

import json
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.fake_providers.exchange import Exchange, FakeResponse
from tests.fake_providers.server import FakeProvider, responds, route, serve_in_thread

KEY = "Key id:secret"


class Acme(FakeProvider):
    credential = ("authorization", KEY)
    usual = ("waiting", "done")

    @route("POST /v1/{model*}")
    def create(self, call: Exchange) -> FakeResponse:
        job = self.begin(call.request.fields)
        return FakeResponse({"id": job.id, "state": job.next_state(), "model": call.params["model"]}, 201)

    @route("GET /v1/jobs/{id}")
    def show(self, call: Exchange) -> FakeResponse:
        job = self.jobs.get(call.params["id"])
        if job is None:
            return self.missing()
        state = job.next_state()
        return FakeResponse({"state": state, "url": self.put(b"video data", "video/mp4") if state == "done" else None})

    @route("DELETE /v1/jobs/{id}")
    def drop(self, call: Exchange) -> FakeResponse:
        self.jobs[call.params["id"]].cancel("gone")
        return FakeResponse(status=204)


def ask(acme: Acme, method: str, path: str, body: object = None, key: str = KEY) -> tuple[int, object]:
    headers = {"authorization": key, "content-type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    try:
        with urlopen(Request(acme.url + path, data, headers, method=method)) as response:  # noqa: S310
            return response.status, json.loads(response.read() or b"null")
    except HTTPError as problem:
        with problem:
            return problem.code, json.loads(problem.read())


def test_journey() -> None:
    with serve_in_thread(Acme()) as acme:
        status, job = ask(acme, "POST", "/v1/a/b", {"prompt": "a fox"})
        assert (status, job) == (201, {"id": "job-000001", "state": "waiting", "model": "a/b"})
        status, shown = ask(acme, "GET", "/v1/jobs/job-000001?logs=1")
        assert isinstance(shown, dict)
        with urlopen(shown["url"]) as response:  # noqa: S310
            assert (response.read(), response.headers["content-type"]) == (b"video data", "video/mp4")
        assert ask(acme, "GET", "/v1/jobs/job-000001")[1] == {**shown, "url": f"{acme.url}/files/file-000003.mp4"}
        assert ask(acme, "DELETE", "/v1/jobs/job-000001") == (204, None)
        assert ask(acme, "GET", "/v1/jobs/job-000001")[1] == {"state": "gone", "url": None}
        assert acme.received("create")[0].fields == {"prompt": "a fox"}
        assert {name: len(endpoint) for name, endpoint in acme.endpoints.items()} == {
            "create": 1, "show": 3, "drop": 1, "files": 1, "others": 0,
        }  # fmt: skip


def test_script() -> None:
    with serve_in_thread(Acme()) as acme:
        acme.next("create", responds({"error": "slow down"}, 429, retry_after="7"))
        acme.next_states.append(("failed",))
        assert ask(acme, "POST", "/v1/a", {}) == (429, {"error": "slow down"})
        assert ask(acme, "POST", "/v1/a", {})[1] == {"id": "job-000001", "state": "failed", "model": "a"}
        assert ask(acme, "POST", "/v1/a", {})[1] == {"id": "job-000002", "state": "waiting", "model": "a"}
        acme.always("files", responds({"error": "away"}, 503))
        assert ask(acme, "GET", "/files/x.mp4") == (503, {"error": "away"})


@pytest.mark.parametrize("path", ["/v1/jobs/unknown", "/elsewhere", "/files/x"])
def test_what_is_not_there(path: str) -> None:
    with serve_in_thread(Acme()) as acme:
        assert ask(acme, "GET", path)[0] == 404


def test_stranger() -> None:
    with serve_in_thread(Acme()) as acme:
        assert ask(acme, "POST", "/v1/a", {}, key="Bearer id:secret")[0] == 401
        assert not acme.jobs


def test_failure_of_a_route_is_the_tests() -> None:
    with pytest.raises(KeyError), serve_in_thread(Acme()) as acme, pytest.raises(OSError):  # noqa: PT011
        ask(acme, "DELETE", "/v1/jobs/unknown")
