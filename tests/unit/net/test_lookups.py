"""Names are looked up in shares: slow names of one organization do not stop the lookups of others."""

import asyncio

import pytest

from penstock.net import lookups as module
from penstock.net.errors import LookupBusy, NotSent
from penstock.net.lookups import NameLookups


class SlowNames:
    """A resolver for which names under `slow.test` never come, until they are released."""

    def __init__(self) -> None:
        self.released = asyncio.Event()
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> list[str]:
        self.asked.append(host)
        if host.endswith("slow.test"):
            await self.released.wait()
        if host.endswith("missing.test"):
            raise OSError("no such name")
        return ["203.0.113.1"]


async def turn() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def start_slow_lookups(lookups: NameLookups, count: int) -> list[asyncio.Task[list[str]]]:
    """Look up so many slow names for one organization."""
    return [
        asyncio.create_task(lookups.look_up(f"n{number}.slow.test", 443, share="org_1", seconds=60))
        for number in range(count)
    ]


async def test_slow_names_of_one_organization_leave_places_for_others() -> None:
    names = SlowNames()
    lookups = NameLookups(names)
    slow = start_slow_lookups(lookups, 100)
    await turn()
    assert len(names.asked) == module._SHARE
    assert await lookups.look_up("fast.test", 443, share="org_2", seconds=60) == ["203.0.113.1"]
    names.released.set()
    assert await asyncio.gather(*slow) == [["203.0.113.1"]] * 100
    assert len(names.asked) == 101
    await lookups.close()


async def test_a_lookup_without_a_place_is_busy_and_not_a_failure_of_the_name() -> None:
    names = SlowNames()
    lookups = NameLookups(names)
    slow = start_slow_lookups(lookups, module._SHARE)
    await turn()
    with pytest.raises(LookupBusy) as busy:
        await lookups.look_up("fast.test", 443, share="org_1", seconds=0)
    assert busy.value.local
    with pytest.raises(NotSent) as late:
        await lookups.look_up("n0.slow.test", 443, share="org_1", seconds=0)
    assert not late.value.local
    names.released.set()
    await asyncio.gather(*slow)
    assert await lookups.look_up("fast.test", 443, share="org_1", seconds=60) == ["203.0.113.1"]


async def test_a_place_stays_occupied_while_the_resolver_works() -> None:
    names = SlowNames()
    lookups = NameLookups(names)
    for number in range(module._SHARE):
        with pytest.raises(NotSent):
            await lookups.look_up(f"n{number}.slow.test", 443, share="org_1", seconds=0.001)
    with pytest.raises(LookupBusy):
        await lookups.look_up("fast.test", 443, share="org_1", seconds=0.001)
    names.released.set()
    assert await lookups.look_up("fast.test", 443, share="org_1", seconds=60) == ["203.0.113.1"]


async def test_all_places_together_are_limited() -> None:
    names = SlowNames()
    lookups = NameLookups(names)
    slow = [
        asyncio.create_task(lookups.look_up(f"n{number}.slow.test", 443, share=f"org_{number}", seconds=60))
        for number in range(module.PLACES + 5)
    ]
    await turn()
    assert len(names.asked) == module.PLACES
    names.released.set()
    await asyncio.gather(*slow)


async def test_lookups_of_one_name_at_the_same_time_are_one() -> None:
    names = SlowNames()
    lookups = NameLookups(names)
    waiting = [
        asyncio.create_task(lookups.look_up("a.slow.test", 443, share=f"org_{number}", seconds=60))
        for number in range(50)
    ]
    await turn()
    names.released.set()
    assert await asyncio.gather(*waiting) == [["203.0.113.1"]] * 50
    assert len(names.asked) == 1
    await turn()
    assert not lookups._under_way
    assert not lookups._occupied


async def test_a_lookup_that_another_began_meanwhile_gives_its_place_back() -> None:
    names = SlowNames()
    lookups = NameLookups(names)
    slow = start_slow_lookups(lookups, module._SHARE)
    await turn()
    alike = [asyncio.create_task(lookups.look_up("same.test", 443, share="org_1", seconds=60)) for _ in range(20)]
    await turn()
    names.released.set()
    await asyncio.gather(*slow, *alike)
    await turn()
    assert not lookups._occupied
    assert not lookups._waiting


async def test_a_name_that_does_not_exist_is_not_found_for_everybody() -> None:
    lookups = NameLookups(SlowNames())
    for _ in range(2 * module.PLACES):
        with pytest.raises(NotSent) as missing:
            await lookups.look_up("missing.test", 443, share="org_1", seconds=60)
        assert not missing.value.local
    assert not lookups._occupied
