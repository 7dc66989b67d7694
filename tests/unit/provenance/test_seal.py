"""A seal is kept, carried over or added, and never a better one covered by a worse one."""

import asyncio
import io
from typing import Any

import c2pa
import pytest

from penstock.imaging.convert import ImageFile
from penstock.imaging.marks import find_marks
from penstock.provenance import seal
from penstock.provenance.seal import read_file, read_state, seal_file, seal_image
from penstock.provenance.signing import Signing
from penstock.provenance.statement import manifest
from tests.fake_providers.scripted import mp4
from tests.signed_files import VENDOR_ROOT, damaged, own_signing, picture, plan, signed_by_vendor

PLAIN = picture("jpeg")
SIGNED = signed_by_vendor(PLAIN, "image/jpeg")
BROKEN = damaged(SIGNED)
OURS = own_signing(trusts_vendor=False)
WORSE = own_signing(trusts_vendor=True)  # the vendor is on the trust list, and the gateway's own certificate is not


def sealed(data: bytes, signing: Signing, mode: str, *, converted: bool) -> dict[str, Any]:
    told = plan(signing, mode, has_seal=find_marks(data).c2pa_bytes > 0)
    return seal_image(data, "image/jpeg", told, signing.sign, ("webp", 90) if converted else None)


@pytest.mark.parametrize(
    ("data", "signing", "mode", "converted", "status"),
    [
        (PLAIN, OURS, "keep", False, "none"),
        (PLAIN, OURS, "keep", True, "none"),
        (PLAIN, OURS, "sign", False, "signed"),
        (PLAIN, OURS, "sign", True, "signed"),
        (SIGNED, OURS, "keep", False, "kept"),
        (SIGNED, OURS, "keep", True, "carried"),
        (SIGNED, OURS, "sign", False, "carried"),
        (SIGNED, WORSE, "sign", False, "kept"),
        (SIGNED, WORSE, "sign", True, "carried"),
        (BROKEN, OURS, "keep", False, "invalid"),
        (BROKEN, OURS, "keep", True, "dropped_invalid"),
        (BROKEN, OURS, "sign", False, "signed"),
        (BROKEN, OURS, "sign", True, "signed"),
    ],
)
def test_what_becomes_of_a_seal(data: bytes, signing: Signing, mode: str, converted: bool, status: str) -> None:
    made = sealed(data, signing, mode, converted=converted)
    assert made["status"] == status
    assert (made["data"] is data) == (not converted and status in ("none", "kept", "invalid"))
    after = read_state(made["data"], made["content_type"], VENDOR_ROOT)
    if status in ("signed", "carried"):
        assert after is not None
        assert (after["state"], after["manifest"], after["manifests"]) == (
            "Valid", made["manifest"], 2 if status == "carried" else 1
        )  # fmt: skip
        assert made["signer"] == "Penstock (self-made)"
    elif status == "kept":
        assert after is not None
        assert after["state"] == "Trusted"
    elif converted:
        assert after is None
    vendor = made["vendor"]
    assert (vendor and vendor["state"]) == (
        None if data is PLAIN else "Invalid" if data is BROKEN else "Trusted" if signing is WORSE else "Valid"
    )


@pytest.mark.parametrize("form", ["png", "jpeg", "webp", "avif", "gif"])
def test_every_image_format_is_sealed_and_a_change_is_noticed(form: str) -> None:
    data = picture(form)
    content_type = f"image/{form}"
    made = seal_image(data, content_type, plan(OURS, has_seal=False), OURS.sign)
    found = read_file(made["data"], content_type, OURS.own_roots)["credentials"]
    assert (found["state"], found["problems"]) == ("Trusted", [])
    assert found["chain"][0]["actions"] == ["c2pa.created"]
    assert found["chain"][0]["request_id"] == "req_1"
    changed = read_file(damaged(made["data"]), content_type, OURS.own_roots)["credentials"]
    assert changed["state"] == "Invalid"
    assert "signingCredential.untrusted" not in changed["problems"]
    assert changed["problems"]


def test_a_video_is_sealed() -> None:
    made = seal_file(mp4(), "video/mp4", plan(OURS, has_seal=False), OURS.sign)
    assert made["status"] == "signed"
    assert read_file(made["data"], "video/mp4", OURS.own_roots)["credentials"]["state"] == "Trusted"


def test_a_chain_tells_all_steps_and_its_worst_state() -> None:
    edited = sealed(SIGNED, OURS, "sign", converted=True)["data"]
    credentials = read_file(edited, "image/webp", OURS.own_roots)["credentials"]
    assert [link["actions"] for link in credentials["chain"]] == [["c2pa.opened", "c2pa.converted"], ["c2pa.created"]]
    assert credentials["chain"][1]["relationship"] == "parentOf"
    assert credentials["state"] == "Valid", "the vendor's root is not trusted here"
    assert not credentials["trusted"]


def test_a_parent_that_somebody_changed_makes_the_whole_tampered() -> None:
    statement = manifest("carried", plan(OURS, has_seal=True)["facts"], converted=True)
    image = ImageFile(picture("webp"), "image/webp", 256, 256)
    made, _ = seal._sign(image, statement, (BROKEN, "image/jpeg"), plan(OURS, has_seal=True), OURS.sign)
    credentials = read_file(made, "image/webp", OURS.own_roots)["credentials"]
    assert credentials["chain"][0]["state"] == "Trusted", "the library trusts such a file"
    assert credentials["state"] == "Invalid"
    assert any("ataHash.mismatch" in code for code in credentials["problems"])


def test_a_file_without_credentials_has_none() -> None:
    assert read_file(PLAIN, "image/jpeg", "")["credentials"] is None


def test_a_signer_that_is_away_leaves_the_file_as_it_is() -> None:
    def away(data: bytes) -> bytes:
        raise ValueError("the gateway cannot sign")

    made = seal_image(PLAIN, "image/jpeg", plan(OURS, has_seal=False), away)
    assert (made["status"], made["data"] is PLAIN) == ("failed", True)
    assert made["reason"]


def test_a_chain_that_grew_too_large_is_not_carried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seal, "MAX_CARRIED_MANIFESTS", 0)
    assert sealed(SIGNED, OURS, "keep", converted=True)["status"] == "dropped_large"
    made = sealed(SIGNED, OURS, "sign", converted=True)
    after = read_state(made["data"], "image/webp", "")
    assert (made["status"], after and after["manifests"]) == ("dropped_large", 1)


def test_a_format_that_cannot_be_sealed_is_named() -> None:
    made = seal_file(b"\x1aE\xdf\xa3webm", "video/webm", plan(OURS, has_seal=False), OURS.sign)
    assert made["status"] == "unsupported_format"


async def test_a_manifest_that_is_elsewhere_is_never_fetched() -> None:
    asked: list[object] = []
    server = await asyncio.start_server(lambda reader, _: asked.append(reader), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    statement = plan(OURS, has_seal=False)["facts"]
    elsewhere = io.BytesIO()
    with c2pa.Builder(manifest("created", statement, converted=False), seal._context("")) as builder:
        builder.set_no_embed()
        builder.set_remote_url(f"http://127.0.0.1:{port}/manifest.c2pa")
        with c2pa.Signer.from_callback(OURS.sign, c2pa.C2paSigningAlg.ES256, OURS.chain.pem, None) as by:
            builder.sign(by, "image/jpeg", io.BytesIO(PLAIN), elsewhere)
    assert b"manifest.c2pa" in elsewhere.getvalue()
    found = await asyncio.to_thread(read_file, elsewhere.getvalue(), "image/jpeg", "")
    server.close()
    assert (asked, found["credentials"]["state"]) == ([], "Invalid")
    assert found["credentials"]["problems"] == ["manifest.inaccessible"]


def test_the_size_of_a_seal_is_that_in_the_file() -> None:
    state = read_state(SIGNED, "image/jpeg", "")
    assert state
    assert state["bytes"] == find_marks(SIGNED).c2pa_bytes > 2000


def signed_as(statement: dict[str, Any], signing: Signing) -> bytes:
    made, _ = seal._sign(
        ImageFile(PLAIN, "image/jpeg", 256, 256), statement, None, plan(signing, has_seal=False), signing.sign
    )
    return made


def test_what_strangers_write_in_unexpected_shapes_is_read() -> None:
    statement = manifest("created", plan(OURS, has_seal=False)["facts"], converted=False)
    statement["assertions"][1]["data"] = ["no", "object"]
    [link] = read_file(signed_as(statement, OURS), "image/jpeg", "")["credentials"]["chain"]
    assert (link["model"], "request_id" in link) == ("lab/image-model", False)
    assert seal._actions_of({"assertions": [{"label": "c2pa.actions", "data": []}, {"label": "c2pa.actions"}]}) == []
    assert seal._actions_of({"assertions": [{"label": "c2pa.actions", "data": {"actions": [1]}}]}) == []


def test_only_our_own_signature_and_trusted_ones_are_vouched_for() -> None:
    ours = sealed(PLAIN, OURS, "sign", converted=False)["data"]
    assert read_file(ours, "image/jpeg", "", OURS.own_roots)["vouched"]
    assert not read_file(SIGNED, "image/jpeg", "", OURS.own_roots)["vouched"]
    assert read_file(SIGNED, "image/jpeg", VENDOR_ROOT, OURS.own_roots)["vouched"]
    assert not read_file(BROKEN, "image/jpeg", VENDOR_ROOT, OURS.own_roots)["vouched"]


def test_the_worst_state_counts_links_that_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    edited = sealed(SIGNED, OURS, "sign", converted=True)["data"]
    monkeypatch.setattr(seal, "_CHAIN_MAX", 1)
    credentials = read_file(edited, "image/webp", OURS.own_roots)["credentials"]
    assert (len(credentials["chain"]), credentials["state"]) == (1, "Valid")
