"""`penstock provenance`: who signs, and what others need to trust it."""

import json
from pathlib import Path

from tests.command_line import done, penstock
from tests.signed_files import signer_command, signer_folder


def status(data: Path, **environment: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(done("provenance", "status", "--json", "--data", data, **environment).out)
    return found


def test_a_self_made_certificate_is_trusted_by_those_who_have_its_root(data_folder: Path, tmp_path: Path) -> None:
    found = status(data_folder)
    assert (found["mode"], found["signer"], found["trusted"]) == ("sign", "self-made", False)
    assert str(found["subject"]).startswith("O=Penstock (self-made),CN=Penstock gateway ")
    assert (found["purposes"], found["expires_at"]) == (["C2PA signing", "e-mail protection"], "2056-11-01T00:00:00Z")
    assert "unknown source" in str(found["viewers_show"])
    root = done("provenance", "root", "--data", data_folder).out
    assert root.count("BEGIN CERTIFICATE") == 1
    (tmp_path / "root.pem").write_text(root)
    found = status(data_folder, PENSTOCK_PROVENANCE_ANCHORS=str(tmp_path / "root.pem"))
    assert (found["trusted"], found["viewers_show"]) == (True, "signed by a trusted source")
    rows = done("provenance", "status", "--data", data_folder).lines
    assert ["trusted", "no"] in rows


def test_the_root_of_an_older_secret_stays(data_folder: Path) -> None:
    before = done("provenance", "root", "--data", data_folder).out
    done("secret", "rotate", "--data", data_folder)
    after = done("provenance", "root", "--data", data_folder).out
    assert after.endswith(before)
    assert after.count("BEGIN CERTIFICATE") == 2


def test_a_certificate_of_ones_own_has_its_root_elsewhere(data_folder: Path, tmp_path: Path) -> None:
    signer_folder(tmp_path)
    environment = {
        "PENSTOCK_PROVENANCE_CERTIFICATE": str(tmp_path / "chain.pem"),
        "PENSTOCK_PROVENANCE_KEY": str(tmp_path / "key.pem"),
    }
    found = status(data_folder, **environment)
    assert (found["signer"], found["trusted"]) == ("file", False)
    ended = penstock("provenance", "root", "--data", data_folder, **environment)
    assert (ended.status, "its issuer has the root" in ended.err) == (1, True)


def test_a_command_that_signs_is_shown_with_its_certificate(data_folder: Path, tmp_path: Path) -> None:
    found = status(data_folder, PENSTOCK_PROVENANCE_SIGNER=signer_command(signer_folder(tmp_path / "signer")))
    assert (found["signer"], found["purposes"]) == ("command", ["C2PA signing", "e-mail protection"])
