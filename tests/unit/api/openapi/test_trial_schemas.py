"""The schemas of trials fit what the gateway shows."""

from penstock.api.openapi.trial_schemas import TRIAL_SCHEMAS
from penstock.trials.records import KINDS


def test_the_results_have_everything_that_a_trial_has_in_the_list() -> None:
    listed = TRIAL_SCHEMAS["Trial"]["properties"]
    assert listed["kind"]["enum"] == list(KINDS)
    assert listed.keys() < TRIAL_SCHEMAS["TrialResults"]["properties"].keys()
