"""Sign and read files with the C2PA library, in a child process: it parses what strangers wrote."""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import c2pa
import msgspec

from penstock.imaging.convert import ImageFile, convert
from penstock.imaging.formats import SVG_TYPE, OutputFormat
from penstock.imaging.marks import find_marks
from penstock.imaging.messages import Signed
from penstock.imaging.svg import clean
from penstock.provenance.certificates import PURPOSES
from penstock.provenance.cose import with_stamp
from penstock.provenance.statement import ASSERTION, INPUT, PARENT, Case, manifest
from penstock.provenance.xmp import packet, with_xmp

SIGNABLE = frozenset(
    {
        "image/png", "image/jpeg", "image/webp", "image/avif", "image/gif", SVG_TYPE,
        "video/mp4", "video/quicktime",
        "audio/mpeg", "audio/wav", "audio/flac", "audio/mp4",
    }
)  # fmt: skip
MAX_CARRIED_BYTES = 1_000_000
MAX_CARRIED_MANIFESTS = 30
MAX_ARCHIVE_BYTES = 200_000
_STATES = ("Invalid", "Valid", "Trusted")  # the worst first
_CHAIN_MAX = 40  # how many manifests of a file are shown

Sign = Callable[[bytes], bytes]
_ALGORITHMS = {
    "es256": c2pa.C2paSigningAlg.ES256,
    "es384": c2pa.C2paSigningAlg.ES384,
    "es512": c2pa.C2paSigningAlg.ES512,
    "ps256": c2pa.C2paSigningAlg.PS256,
    "ed25519": c2pa.C2paSigningAlg.ED25519,
}


def seal_image(
    data: bytes,
    content_type: str,
    plan: Mapping[str, Any],
    sign: Sign,
    conversion: tuple[OutputFormat, int] | None = None,
) -> dict[str, Any]:
    """Convert an image if that is asked for, and seal the result as the plan says; see `seal_file`."""
    image = ImageFile(data, content_type, 0, 0)
    if conversion:
        converted = convert(data, *conversion)
        if converted.data is not data:
            image = converted
    made, told = _seal(data, content_type, image, plan, sign)
    return {"data": made, "content_type": image.content_type, "width": image.width, "height": image.height, **told}


def seal_svg(data: bytes, plan: Mapping[str, Any], sign: Sign) -> dict[str, Any]:
    """Clean a vector image, and seal the result as the plan says; see `seal_file`."""
    image = clean(data)
    made, told = _seal(data, SVG_TYPE, image, plan, sign)
    return {"data": made, "content_type": SVG_TYPE, "width": image.width, "height": image.height, **told}


def seal_file(data: bytes, content_type: str, plan: Mapping[str, Any], sign: Sign) -> dict[str, Any]:
    """Seal a file as the plan says.

    The plan has `mode`, the `facts` of the statement, and what is known of the signer. Returns the file, the same
    object if it is not changed, with `status` and what a caller is told of it. Nothing that the library finds wrong is
    raised: the file is returned without a seal of ours, with the status `failed` and a `reason`.
    """
    made, told = _seal(data, content_type, ImageFile(data, content_type, 0, 0), plan, sign)
    return {"data": made, **told}


def _seal(
    original: bytes, content_type: str, output: ImageFile, plan: Mapping[str, Any], sign: Sign
) -> tuple[bytes, dict[str, Any]]:
    is_converted = output.data is not original
    anchors = plan["signer"]["anchors"]
    vendor = read_state(original, content_type, anchors) if plan["has_seal"] else None
    told: dict[str, Any] = {"vendor": vendor and {"signer": vendor["signer"], "state": vendor["state"]}}
    status, case = _decide(plan, vendor, is_converted=is_converted)
    if case and output.content_type not in SIGNABLE:
        status, case = "unsupported_format", None
    told["status"] = status
    if case is None:
        if vendor and status in ("kept", "invalid"):
            told |= {name: vendor[name] for name in ("signer", "manifest", "digital_source_type")}
            told["trusted"] = vendor["state"] == "Trusted"
        return output.data, told
    try:
        parent = (original, content_type) if case == "carried" else None
        inputs = [f"{INPUT}{number}" for number, _ in plan["inputs"]]
        statement = manifest(case, plan["facts"], converted=is_converted, inputs=inputs)
        xmp = packet(plan["facts"]) if case == "created" else b""
        if case == "carried" and is_converted and vendor and vendor["digital_source_type"]:
            xmp = packet({"source_type": vendor["digital_source_type"]})
        marked = with_xmp(output.data, output.content_type, xmp) if xmp else output.data
        sealed, label = _sign(msgspec.structs.replace(output, data=marked), statement, parent, plan, sign)
    except (c2pa.C2paError, ValueError) as error:
        # The vendor's seal is still there if nothing was changed.
        return output.data, told | {"status": "failed", "reason": f"{type(error).__name__}: {error}"[:300]}
    source_type = plan["facts"]["source_type"] if case == "created" else vendor and vendor["digital_source_type"]
    told |= {"signer": plan["signer"]["name"], "trusted": plan["signer"]["trusted"], "manifest": label}
    return sealed, told | {"digital_source_type": source_type}


def _decide(
    plan: Mapping[str, Any], vendor: Mapping[str, Any] | None, *, is_converted: bool
) -> tuple[str, Case | None]:
    """Return the status of an output, and how it is signed, if it is.

    A better seal is never covered by a worse one: readers would show the provider's signature as less trusted.
    """
    signs = plan["mode"] == "sign"
    if vendor is None:
        return ("signed", "created") if signs else ("none", None)
    if vendor["state"] == "Invalid":
        if signs:
            return "signed", "created"
        return ("dropped_invalid" if is_converted else "invalid"), None
    too_large = vendor["bytes"] > MAX_CARRIED_BYTES or vendor["manifests"] > MAX_CARRIED_MANIFESTS
    if is_converted:
        return ("dropped_large", "created" if signs else None) if too_large else ("carried", "carried")
    worse = vendor["state"] == "Trusted" and not plan["signer"]["trusted"]
    if signs and not worse and not too_large:
        return "carried", "carried"
    return "kept", None


def _sign(
    output: ImageFile,
    statement: dict[str, Any],
    parent: tuple[bytes, str] | None,
    plan: Mapping[str, Any],
    sign: Sign,
) -> tuple[bytes, str]:
    """Return the file with its seal, and the name of the manifest."""
    signer = plan["signer"]
    label = f"urn:c2pa:{uuid.uuid4()}"
    context = _context(signer["anchors"])
    with c2pa.Builder({**statement, "label": label}, context) as builder:
        if parent:
            ingredient = {"title": "output of the provider", "relationship": "parentOf", "label": PARENT}
            builder.add_ingredient(json.dumps(ingredient), parent[1], io.BytesIO(parent[0]))
        for _, archive in plan["inputs"]:
            builder.add_ingredient_from_archive(io.BytesIO(archive))
        made = io.BytesIO()
        stamps: list[bytes] = []

        def signature(data: bytes) -> bytes:
            signed = sign(data)
            stamps.append(signed.stamp if isinstance(signed, Signed) else b"")
            return bytes(signed)

        with c2pa.Signer.from_callback(signature, _ALGORITHMS[signer["algorithm"]], signer["chain"], None) as by:
            store = builder.sign(by, output.content_type, io.BytesIO(output.data), made)
    if stamps[-1]:
        return _stamped(made.getvalue(), output.content_type, store, stamps[-1], signer["anchors"]), label
    return made.getvalue(), label


def _stamped(sealed: bytes, content_type: str, store: bytes, stamp: bytes, anchors: str) -> bytes:
    """The file with the time-stamp of its seal. Raises ValueError unless the library finds both valid."""
    made = with_stamp(sealed, content_type, store, stamp)
    found = _read(made, content_type, anchors)
    newest = found.get("validation_results", {}).get("activeManifest", {}) if found else {}
    codes = {each.get("code") for each in newest.get("success", ())}
    if found is None or found["state"] == "Invalid" or "timeStamp.validated" not in codes:
        raise ValueError("the time-stamp does not hold")
    return made


# --------------------------------------------------------------------------------------------------------------- inputs


def archive_input(data: bytes, content_type: str, number: int, anchors: str) -> dict[str, Any]:
    """What the Content Credentials of an input say, for the statements of what is made from it; nothing if they do not
    hold, or are too large.
    """
    found = read_state(data, content_type, anchors)
    is_usable = found is not None and found["state"] != "Invalid" and found["manifests"] <= MAX_CARRIED_MANIFESTS
    if not is_usable:
        return {"archive": b""}
    name = f"{INPUT}{number}"
    ingredient = {"title": f"input {number}", "relationship": "inputTo", "label": name}
    archive = io.BytesIO()
    try:
        with c2pa.Builder({"claim_generator_info": [{"name": "Penstock"}]}, _context(anchors)) as builder:
            builder.add_ingredient(json.dumps(ingredient), content_type, io.BytesIO(data))
            builder.write_ingredient_archive(name, archive)
    except (c2pa.C2paError, ValueError):
        return {"archive": b""}
    return {"archive": archive.getvalue() if archive.tell() <= MAX_ARCHIVE_BYTES else b""}


# -------------------------------------------------------------------------------------------------------------- reading


def read_state(data: bytes, content_type: str, anchors: str) -> dict[str, Any] | None:
    """What the newest manifest of a file says, and whether it holds, alone; none if there is no manifest."""
    store = _read(data, content_type, anchors)
    if store is None:
        return None
    newest = store["manifests"].get(store["active_manifest"], {})
    return {
        "state": store["state"],
        "signer": _signer_of(newest),
        "manifest": store["active_manifest"],
        "manifests": len(store["manifests"]),
        "bytes": find_marks(data).c2pa_bytes,
        "digital_source_type": _source_type_of(newest),
    }


def read_file(
    data: bytes, content_type: str, anchors: str, own_roots: str = "", own_serial: str = ""
) -> dict[str, Any]:
    """Everything that a person wants to know about the credentials of a file.

    `state` is the worst of the file and of all files that it was made from: the library itself calls a file trusted
    whose parent somebody changed. `vouched` says that the newest statement is by somebody on the list of `anchors`, or
    by us: anybody can sign a statement of the same name as one of ours. `is_own` says that it is by the certificate
    with the number `own_serial`, which our root has issued.
    """
    store = _read(data, content_type, anchors)
    if store is None:
        return {"credentials": None, "vouched": False, "is_own": False}
    states = {store["active_manifest"]: store["state"]}
    relations: dict[str, str] = {}
    for each in store["manifests"].values():
        for ingredient in each.get("ingredients", ()):
            label = ingredient.get("active_manifest")
            if label:
                states.setdefault(label, _ingredient_state(ingredient))
                relations.setdefault(label, str(ingredient.get("relationship", "")))
    order = _newest_first(store)
    chain = [_link(label, store["manifests"][label], states, relations) for label in order[:_CHAIN_MAX]]
    worst = min((states.get(label, "Invalid") for label in order), key=_STATES.index, default="Invalid")
    newest = chain[0] if chain else {}
    credentials = {
        "state": worst,
        "signer": newest.get("signer"),
        "trusted": worst == "Trusted",
        "signed_at": newest.get("signed_at"),
        "manifest": store["active_manifest"],
        "problems": sorted(_problems(store)),
        "chain": chain,
    }
    by_us = store["state"] != "Invalid" and bool(own_roots) and _is_by(data, content_type, own_roots)
    signature = store["manifests"].get(store["active_manifest"], {}).get("signature_info") or {}
    return {
        "credentials": credentials,
        "vouched": by_us or store["state"] == "Trusted",
        "is_own": by_us and signature.get("cert_serial_number") == own_serial,
    }


def _newest_first(store: Mapping[str, Any]) -> list[str]:
    """The names of the manifests: that of the file, then those that it was made from, then theirs, then any others."""
    found: dict[str, None] = dict.fromkeys([store["active_manifest"]] if store["active_manifest"] else [])
    waiting = list(found)
    while waiting:
        parts = store["manifests"].get(waiting.pop(0), {}).get("ingredients", ())
        new = [label for part in parts if (label := part.get("active_manifest")) and label not in found]
        found |= dict.fromkeys(new)
        waiting += new
    return [label for label in found | dict.fromkeys(store["manifests"]) if label in store["manifests"]]


def _is_by(data: bytes, content_type: str, roots: str) -> bool:
    """Whether one of these roots vouches for whoever signed the newest manifest; the others may be by anybody."""
    found = _read(data, content_type, roots)
    newest = found.get("validation_results", {}).get("activeManifest", {}) if found else {}
    return any(each.get("code") == "signingCredential.trusted" for each in newest.get("success", ()))


def _problems(store: Mapping[str, Any]) -> set[str]:
    """The codes of everything that does not hold, of the file and of all that it was made from."""
    results = [store.get("validation_results", {})]
    for each in store["manifests"].values():
        results += [ingredient.get("validation_results", {}) for ingredient in each.get("ingredients", ())]
    deltas = [delta.get("validationDeltas", {}) for delta in results[0].get("ingredientDeltas", ())]
    statuses = [result.get("activeManifest", {}) for result in results] + deltas
    codes = {str(each.get("code")) for status in statuses for each in status.get("failure", ())}
    if "problem" in store:
        codes.add(store["problem"])
    return codes


def _read(data: bytes, content_type: str, anchors: str) -> dict[str, Any] | None:
    try:
        reader = c2pa.Reader.try_create(content_type, io.BytesIO(data), context=_context(anchors))
    except (c2pa.C2paError, ValueError) as error:
        # Those that are only named by a URL are never fetched; any others are broken.
        problem = "manifest.inaccessible" if "remote manifest" in str(error).lower() else "manifest.unreadable"
        return {"manifests": {}, "active_manifest": None, "state": "Invalid", "problem": problem}
    if reader is None:
        return None
    with reader:
        store: dict[str, Any] = json.loads(reader.json())
        store["state"] = reader.get_validation_state() or "Invalid"
    store.setdefault("manifests", {})
    store.setdefault("active_manifest", None)
    return store


def _link(
    label: str, found: Mapping[str, Any], states: Mapping[str, str], relations: Mapping[str, str]
) -> dict[str, Any]:
    said = (each.get("data") for each in found.get("assertions", ()) if each.get("label") == ASSERTION)
    request = next((each for each in said if isinstance(each, Mapping)), {})
    link = {
        "manifest": label,
        "signer": _signer_of(found),
        "state": states.get(label, "Invalid"),
        "relationship": relations.get(label),
        "signed_at": found.get("signature_info", {}).get("time"),
        "actions": [str(action.get("action")) for action in _actions_of(found)],
        "digital_source_type": _source_type_of(found),
        "model": request.get("executed_model") or _agent_of(found),
        "request_id": request.get("request_id"),
    }
    return {name: value for name, value in link.items() if value is not None}


def _ingredient_state(ingredient: Mapping[str, Any]) -> str:
    results = ingredient.get("validation_results", {}).get("activeManifest", {})
    failures = [each for each in results.get("failure", ()) if each.get("code") != "signingCredential.untrusted"]
    if failures or not results:
        return "Invalid"
    codes = {each.get("code") for each in results.get("success", ())}
    return "Trusted" if "signingCredential.trusted" in codes else "Valid"


def _signer_of(found: Mapping[str, Any]) -> str | None:
    signature = found.get("signature_info") or {}
    return signature.get("issuer") or signature.get("common_name")


def _actions_of(found: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    actions: list[Mapping[str, Any]] = []
    for each in found.get("assertions", ()):
        if str(each.get("label", "")).startswith("c2pa.actions"):
            said = each.get("data")
            said = said.get("actions") if isinstance(said, Mapping) else None
            actions += [action for action in said or () if isinstance(action, Mapping)]
    return actions


def _source_type_of(found: Mapping[str, Any]) -> str | None:
    for action in _actions_of(found):
        if kind := action.get("digitalSourceType"):
            return str(kind).rpartition("/")[2]
    return None


def _agent_of(found: Mapping[str, Any]) -> str | None:
    for action in _actions_of(found):
        agent = action.get("softwareAgent")
        if agent:
            return str(agent.get("name") if isinstance(agent, Mapping) else agent)
    return None


@lru_cache(maxsize=4)
def _context(anchors: str) -> c2pa.Context:
    """The library's settings: it never uses the network, and it knows what certificates of this kind are for."""
    trust = {"trust_config": "\n".join(PURPOSES) + "\n"}
    if anchors:
        trust["user_anchors"] = anchors
    off = {"enabled": False}
    return c2pa.Context.from_dict(
        {
            "trust": trust,
            "verify": {"remote_manifest_fetch": False, "ocsp_fetch": False, "verify_after_sign": True},
            "core": {"allowed_network_hosts": []},
            "builder": {
                "thumbnail": off,
                "actions": {"auto_created_action": off, "auto_opened_action": off, "auto_placed_action": off},
                "created_assertion_labels": ["c2pa.actions", "c2pa.ingredient", "c2pa.metadata", ASSERTION],
            },
        }
    )
