"""`penstock guards`: what guards watch, and how often each gave each verdict."""

import asyncio
import json
from pathlib import Path

from penstock.app.opening import open_store_and_vault
from penstock.clock import Clock
from penstock.guards.verdict_counts import VerdictCounts
from penstock.settings import Settings
from penstock.values import OrgId
from tests.command_line import done


def test_guards_are_listed_with_their_verdicts(data_folder: Path) -> None:
    assert done("guards", "--data", data_folder).lines == []
    (data_folder / "penstock.toml").write_text('[guards.words]\nrules = {words = ["canary"]}\nkinds = ["image"]\n')

    org = done("orgs", "create", "--name", "a", "--data", data_folder).out.strip()

    async def count() -> None:
        async with open_store_and_vault(Settings(data=data_folder)) as (store, _):
            counts = VerdictCounts(store, Clock())
            counts.add(OrgId(org), "words", "refuse")
            counts.add(OrgId("org_b"), "words", "pass")
            await counts.write()

    asyncio.run(count())
    first = ["words", "input", "rules", "image", "refuse", "closed"]
    assert done("guards", "--data", data_folder).lines == [[*first, "1", "0", "1", "0"]]
    assert done("guards", "--org", org, "--data", data_folder).lines == [[*first, "0", "0", "1", "0"]]
    shown = done("guards", "--json", "--data", data_folder).out
    assert json.loads(shown)[0]["rules"]["words"] == 1
    assert "canary" not in shown
