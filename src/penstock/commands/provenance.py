"""Show who signs outputs, and the certificate that others need to trust those signatures."""

from datetime import UTC, datetime
from typing import Any

import typer

from penstock.commands.data_folder import Config, Data, load_settings, with_store
from penstock.commands.output import Json, print_json, report
from penstock.commands.tables import show_table
from penstock.package_extras import check_extra
from penstock.provenance.certificates import purposes_of
from penstock.provenance.opening import open_signing
from penstock.provenance.policy import operators_policy
from penstock.provenance.signing import Signing
from penstock.settings import Settings
from penstock.store.base import Store
from penstock.vault import Vault

app = typer.Typer(no_args_is_help=True, help="Show who signs outputs, and the root certificate of this gateway.")

_TRUSTED = "signed by a trusted source"
_UNTRUSTED = "signed by an unknown source; whoever adds the root certificate sees a trusted one"


@app.command()
def status(data: Data = None, config: Config = None, as_json: Json = False) -> None:
    """Show who signs outputs, until when, and whether others trust it."""
    settings = load_settings(data=data, config=config)
    signing = _open(settings)
    policy = operators_policy(settings)
    leaf = signing.chain.leaf
    facts: dict[str, Any] = {
        "mode": policy.mode,
        "required": policy.required,
        "signer": signing.kind,
        "subject": leaf.subject.rfc4514_string(),
        "purposes": purposes_of(leaf),
        "expires_at": f"{signing.expires_at:%Y-%m-%dT%H:%M:%SZ}",
        "time_stamps": settings.provenance_timestamp_url or "none",
        "trusted": signing.is_trusted,
        "viewers_show": _TRUSTED if signing.is_trusted else _UNTRUSTED,
    }
    if as_json:
        print_json(facts)
        return
    rows = [[name.replace("_", " "), _text(value)] for name, value in facts.items()]
    show_table("Provenance", ["what", "value"], rows)


@app.command()
def root(data: Data = None, config: Config = None, as_json: Json = False) -> None:
    """Print the self-made root certificate as PEM, with those of older master secrets after it.

    Whoever adds it to what they trust sees the signatures of this gateway as trusted.
    """
    signing = _open(load_settings(data=data, config=config))
    if not signing.is_self_made:
        raise RuntimeError("this gateway does not sign with a certificate of its own: its issuer has the root")
    report(signing.own_roots.rstrip(), as_json, root=signing.own_roots)


def _open(settings: Settings) -> Signing:
    check_extra("provenance", "Signing outputs")

    async def work(store: Store, vault: Vault) -> Signing | None:
        return open_signing(settings, vault, datetime.now(UTC))

    signing = with_store(settings, work)
    assert signing is not None, "the extra is installed"
    return signing


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(value) if isinstance(value, list) else str(value)
