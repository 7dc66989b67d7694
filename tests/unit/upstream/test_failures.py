"""What an attempt's failure says, by how it failed."""

from dataclasses import replace

import pytest

from penstock.net.errors import MaybeSent, NotSent
from penstock.providers.openai_compatible import CHAT
from penstock.providers.spec import Model, Provider, Result
from penstock.upstream.candidate import Candidate
from penstock.upstream.failures import (
    AttemptFailed,
    Failure,
    connection_failure,
    failure_in_body,
    job_failure,
    unknown_outcome,
)

ACME = Provider(slug="acme", name="Acme", docs="", base_url="https://acme.example/v1", models=())
CANDIDATE = Candidate(ACME, Model(id="m", upstream="m", op=CHAT, prices=()), "s3cr3t")


def test_an_exception_has_the_message_of_its_failure() -> None:
    failure = Failure("broken", "The Lab did not accept the account.", status=402, words="No credit left.")
    assert (str(AttemptFailed(failure)), AttemptFailed(failure).failure) == (failure.message, failure)
    assert str(AttemptFailed(unknown_outcome("No response.", timed_out=True))) == "No response."


def test_which_failures_may_pass_and_which_allow_another_provider() -> None:
    busy = Failure("busy", "no", status=429, retry_after_seconds=3)
    assert busy.may_pass
    assert busy.allows_failover
    assert not replace(busy, accepted=True).may_pass, "the provider had begun with it"
    assert not unknown_outcome("gone").allows_failover
    assert not Failure("refused", "will not draw that").allows_failover


def test_only_a_request_that_was_not_sent_may_be_sent_elsewhere() -> None:
    unsent = connection_failure(ACME, NotSent("refused"))
    assert unsent == Failure("unsent", "Acme could not be reached.", sent=False)
    assert unsent.allows_failover
    for is_timeout, ending in ((True, "did not respond in time"), (False, "closed the connection without a response")):
        unknown = connection_failure(ACME, MaybeSent("gone", timeout=is_timeout))
        assert unknown == Failure("timeout", f"Acme {ending}.", unknown=True, timed_out=is_timeout)
        assert not unknown.allows_failover


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
