"""The operations on accounts and buckets are among all others."""

from penstock.api.openapi.account_operations import ACCOUNT_OPERATIONS
from penstock.api.openapi.operations import OPERATIONS


def test_they_are_described_with_the_others() -> None:
    assert {"add_account", "add_destination"} <= ACCOUNT_OPERATIONS.keys()
    assert all(OPERATIONS[name] is operation for name, operation in ACCOUNT_OPERATIONS.items())
