"""A file is read in a child process, and judged."""

from penstock.imaging.workers import WorkerPool
from penstock.provenance.reading import read_origin
from penstock.provenance.sealer import TASKS
from penstock.values import OrgId
from tests.signed_files import VENDOR_ROOT, damaged, picture, signed_by_vendor

ORG = OrgId("org_1")


async def test_a_file_is_read_and_judged() -> None:
    signed = signed_by_vendor(picture("png"), "image/png")
    async with WorkerPool(2, tasks=TASKS) as pool:
        found = await read_origin(signed, pool, anchors=VENDOR_ROOT, for_org=ORG)
        assert (found.vouched, found.content_type) == (True, "image/png")
        shown = found.shown(is_known=False)
        assert (shown["verdict"], shown["credentials"]["state"]) == ("ai_marked", "Trusted")
        assert found.shown(is_known=True)["verdict"] == "made_here"
        found = await read_origin(signed, pool, anchors="", own_roots=VENDOR_ROOT, for_org=ORG)
        assert (found.vouched, found.shown(is_known=False)["credentials"]["trusted"]) == (True, False)
        found = await read_origin(damaged(signed), pool, anchors=VENDOR_ROOT, own_roots=VENDOR_ROOT, for_org=ORG)
        assert (found.vouched, found.shown(is_known=True)["verdict"]) == (False, "tampered")


async def test_what_is_no_file_needs_no_child() -> None:
    async with WorkerPool(2, tasks=TASKS) as pool:
        found = await read_origin(b"no file at all", pool, anchors="", for_org=ORG)
        assert (found.content_type, found.shown(is_known=False)["verdict"], pool.pids) == (None, "none", [])
