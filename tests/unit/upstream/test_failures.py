"""What an attempt's failure says, by how it failed."""

import pytest

from penstock.net.errors import MaybeSent, NotSent
from penstock.providers.openai_compatible import CHAT
from penstock.providers.spec import Model, Provider, Result
from penstock.upstream.candidate import Candidate
from penstock.upstream.errors import AttemptFailed, OutcomeUnknown
from penstock.upstream.failures import connection_failure, failure_in_body, job_failure

ACME = Provider(slug="acme", name="Acme", docs="", base_url="https://acme.example/v1", models=())
CANDIDATE = Candidate(ACME, Model(id="m", upstream="m", op=CHAT, prices=()), "s3cr3t")


def test_only_a_request_that_was_not_sent_may_be_sent_elsewhere() -> None:
    unsent = connection_failure(ACME, NotSent("refused"))
    assert isinstance(unsent, AttemptFailed)
    assert (unsent.kind, unsent.sent, unsent.message) == ("unsent", False, "Acme could not be reached.")
    for is_timeout, ending in ((True, "did not respond in time"), (False, "closed the connection without a response")):
        unknown = connection_failure(ACME, MaybeSent("gone", timeout=is_timeout))
        assert isinstance(unknown, OutcomeUnknown)
        assert (unknown.timeout, unknown.message) == (is_timeout, f"Acme {ending}.")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"error": {"code": 429, "message": "slow"}}', 429),
        (b'{"error": {"code": "invalid_key"}}', 500),
        (b'{"error": {"code": 200}}', 500),
        (b'{"error": {"code": []}}', 500),
        (b"not json", 500),
    ],
)
def test_an_error_in_a_body_may_name_its_status(body: bytes, status: int) -> None:
    assert failure_in_body(CANDIDATE, body).status == status


def test_a_failed_job_says_why_without_the_credential() -> None:
    failure = job_failure(CANDIDATE, Result(status="failed", message="key s3cr3t is bad", cost_usd="0.1"))
    assert "s3cr3t" not in failure.message
    assert failure.cost_usd == "0.1"
    assert job_failure(CANDIDATE, Result(status="failed")).message == "Acme gave no reason for the failure."
