"""What the errors of attempts carry."""

from penstock.upstream.errors import AttemptFailed, OutcomeUnknown


def test_an_error_has_its_message_and_what_is_for_the_operator_only() -> None:
    failed = AttemptFailed("lab", "broken", "The Lab did not accept the account.", status=402, words="No credit left.")
    assert (str(failed), failed.words) == ("The Lab did not accept the account.", "No credit left.")
    assert str(OutcomeUnknown("lab", "No response.", timeout=True)) == "No response."
