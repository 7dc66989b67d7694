"""`penstock users`: the first operator, and people who leave."""

import asyncio
from pathlib import Path

from penstock.app.opening import open_store_and_vault
from penstock.clock import Clock
from penstock.people.oidc import Identity, SignInFailed
from penstock.people.users import Users
from penstock.settings import Settings
from tests.command_line import done, penstock


async def enter(data: Path) -> str:
    """Somebody signs in; returns the refusal, or nothing."""
    async with open_store_and_vault(Settings(data=data)) as (store, _):
        identity = Identity("https://issuer.example", "anna", "anna@studio.example", True, "Anna", frozenset())
        try:
            await Users(store, Clock()).enter(identity, (), None)
        except SignInFailed as problem:
            return problem.code
        return ""


def test_the_first_operator_is_granted_and_a_leaver_is_deactivated(data_folder: Path) -> None:
    absent = penstock("users", "grant", "anna@studio.example", "--role", "operator", "--data", data_folder)
    assert (absent.status, "has signed in yet" in absent.err) == (1, True)
    done("keys", "create", "--data", data_folder)  # creates the first organization
    assert asyncio.run(enter(data_folder)) == "no-access"
    done("users", "grant", "Anna@studio.example", "--role", "operator", "--data", data_folder)
    assert asyncio.run(enter(data_folder)) == ""
    [row] = done("users", "list", "--data", data_folder).lines
    assert row[1:4] == ["anna@studio.example", "active", "operator of *"]
    done("users", "deactivate", row[0], "--data", data_folder)
    assert asyncio.run(enter(data_folder)) == "deactivated"
    done("users", "activate", "anna@studio.example", "--data", data_folder)
    done("users", "grant", row[0], "--role", "none", "--org", "*", "--data", data_folder)
    assert asyncio.run(enter(data_folder)) == "no-access"
    assert penstock("users", "grant", row[0], "--role", "boss", "--data", data_folder).status == 1


def test_keys_of_a_person_are_made_within_limits(data_folder: Path) -> None:
    done("keys", "create", "--data", data_folder)
    asyncio.run(enter(data_folder))
    done("users", "grant", "anna@studio.example", "--role", "member", "--data", data_folder)
    limits = done("users", "key-limits", "--usd-per-month", "20", "--model", "atelier/*", "--data", data_folder)
    assert done("users", "key-limits", "--data", data_folder).out == limits.out
    made = done("users", "make-key", "anna@studio.example", "--name", "laptop", "--data", data_folder)
    assert made.out.startswith("pk_")
    [row] = done("users", "keys", "anna@studio.example", "--data", data_folder).lines
    assert (row[1], row[4]) == ("laptop", "20")
    assert ("laptop", "Anna") in [(row[1], row[6]) for row in done("keys", "list", "--data", data_folder).lines]
    refused = penstock("users", "make-key", "anna@studio.example", "--usd-per-month", "21", "--data", data_folder)
    assert (refused.status, "`usd_per_month` must be at most 20 USD" in refused.err) == (1, True)
