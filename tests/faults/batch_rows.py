"""What must hold of a batch whose processes were killed."""

from tests.faults.rig import Rig, Running


async def check_rows(rig: Rig, served: Running, batch_id: str, rows: int) -> None:
    """Every row is one request that is charged once, in the order of the file, and the batch costs their sum."""
    batch = (await served.ask("GET", f"/v1/batches/{batch_id}")).json
    assert (batch["counts"]["completed"], batch["counts"]["failed"]) == (rows, 0), batch
    ended = await rig.rows("SELECT number, request_id, cost FROM batch_rows ORDER BY number")
    assert [found["number"] for found in ended] == list(range(1, rows + 1))
    assert len({found["request_id"] for found in ended}) == rows
    charged = await rig.rows("SELECT ref, amount FROM transfers WHERE kind = 'capture'")
    assert {found["ref"]: found["amount"] for found in charged} == {
        found["request_id"]: found["cost"] for found in ended
    }
    assert len(charged) == rows
    assert [found["held"] for found in await rig.rows("SELECT held FROM orgs")] == [0]
    assert sum(found["cost"] for found in ended) == round(batch["cost"] * 1_000_000_000)
    assert await rig.breaches() == []


async def has_status(rig: Rig, status: str) -> bool:
    """Whether all batches have this status."""
    return not await rig.rows(f"SELECT id FROM batches WHERE status <> '{status}'")  # noqa: S608 - a word of a test
