"""Seals keep the rules of the C2PA's conformance programme that the library does not enforce, read without it."""

import pytest

from penstock.provenance.seal import archive_input, seal_file, seal_image
from tests.jumbf import manifests
from tests.signed_files import camera_photo, own_signing, picture, plan, signed_by_vendor

OURS = own_signing(trusts_vendor=False)


def created(converted: bool) -> bytes:
    plain = picture("JPEG" if converted else "PNG")
    photo = camera_photo()
    archive = archive_input(photo, "image/jpeg", 1, "")["archive"]
    said = {**plan(OURS, has_seal=False), "inputs": [(1, archive)]}
    content_type = "image/jpeg" if converted else "image/png"
    sealed = seal_image(plain, content_type, said, OURS.sign, ("png", 100) if converted else None)
    assert sealed["status"] == "signed"
    made: bytes = sealed["data"]
    return made


def carried() -> bytes:
    sealed = seal_file(signed_by_vendor(picture("PNG"), "image/png"), "image/png", plan(OURS, has_seal=True), OURS.sign)
    made: bytes = sealed["data"]
    return made


CASES = {"created": lambda: created(False), "created and converted": lambda: created(True), "carried": carried}


@pytest.mark.parametrize("case", CASES)
def test_a_seal_keeps_the_rules_that_the_library_does_not_enforce(case: str) -> None:
    _, claim, assertions = manifests(CASES[case]())[-1]
    generator = claim["claim_generator_info"]
    assert (generator[0] if isinstance(generator, list) else generator)["specVersion"] == "2.4"
    listed = [each["url"].rpartition("/")[2] for each in claim["created_assertions"]]
    assert {"c2pa.actions.v2", "org.penstock.request"} <= set(listed)
    actions = assertions["c2pa.actions.v2"]
    assert actions["allActionsIncluded"] is True
    first, *others = actions["actions"]
    if case == "carried":
        assert first["action"] == "c2pa.opened"
        assert len(first["parameters"]["ingredients"]) == 1
        assert "digitalSourceType" not in first
    else:
        assert first["action"] == "c2pa.created"
        assert first["digitalSourceType"].endswith("/trainedAlgorithmicMedia")
        assert len(first["parameters"]["ingredients"]) == 1, "the input"
    assert [action["action"] for action in others] == (["c2pa.converted"] if "converted" in case else [])
