"""The schemas of batches know every state."""

from penstock.api.openapi.batch_schemas import BATCH_SCHEMAS
from penstock.batches.records import STATUSES


def test_a_batch_may_be_in_every_state_that_the_gateway_knows() -> None:
    assert BATCH_SCHEMAS["Batch"]["properties"]["status"]["enum"] == list(STATUSES)
