"""What the OpenAPI document says about the operations on accounts at vendors, on buckets for outputs, and on guards."""

from collections.abc import Mapping
from typing import NamedTuple


class Operation(NamedTuple):
    """The group and the description of an operation."""

    tag: str
    about: str


ACCOUNT_OPERATIONS: Mapping[str, Operation] = {
    "list_accounts": Operation(
        "Installation",
        "Lists the accounts at vendors: operators see all, admins those of their organization. No credential is shown.",
    ),
    "add_account": Operation(
        "Installation",
        "Adds a credential of a provider beside that of the environment. Calls are shared among them by priority and "
        "weight; each job stays with the account that started it.",
    ),
    "change_account": Operation("Installation", "Changes what the body names, but not the credential."),
    "rotate_account": Operation(
        "Installation",
        "Replaces the credential, also for the jobs that run: it must be of the same account at the vendor.",
    ),
    "delete_account": Operation(
        "Installation",
        "Deletes an account. While jobs that it started are open this is refused, or with `drain=true` it is kept for "
        "them only.",
    ),
    "list_destinations": Operation(
        "Destinations", "Lists the buckets into which outputs of the organization are copied. No keys are shown."
    ),
    "add_destination": Operation(
        "Destinations", "Adds a bucket, after a small file was written into it, read and deleted again."
    ),
    "change_destination": Operation(
        "Destinations", "Changes what the body names, but neither the bucket nor its keys."
    ),
    "rotate_destination": Operation(
        "Destinations", "Replaces the keys, after a file was written with the new ones; files that wait use them, too."
    ),
    "check_destination": Operation("Destinations", "Writes a small file into the bucket, reads it and deletes it."),
    "delete_destination": Operation("Destinations", "Deletes a destination with its keys. What was copied stays."),
    "list_guards": Operation(
        "Guards",
        "Lists the guards that watch the organization, and for the scope `operator` all, with the number of each of "
        "their verdicts. Neither words nor URLs are shown.",
    ),
}
