"""The accounts at vendors: read from the store, changed by operators, and offered as candidates."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from penstock.clock import Clock
from penstock.errors import Conflict, InvalidRequest, NotFound
from penstock.models.catalog import Catalog
from penstock.store.base import Row, Store, Transaction
from penstock.upstream.candidate import Candidate
from penstock.upstream.vendor_account import VendorAccount
from penstock.values import is_id, iso, new_id
from penstock.vault import Vault

REFRESH_SECONDS = 1.0  # other processes notice a change within two seconds
MAX_NAME_CHARS = 100
MAX_WEIGHT = 100
MAX_PRIORITY = 1000
MAX_CREDENTIAL_CHARS = 8192  # a service account in JSON has some thousands
STATUSES = ("on", "off")  # that operators set
_CHANGED = "accounts changed"  # the fact that each change sets anew
_MAX_MODELS = 200
_LAST = 4
_MOST_KEPT = 4096  # candidates with accounts in memory


class VendorAccounts:
    """The accounts of this installation, as this process knows them."""

    def __init__(self, store: Store, vault: Vault, clock: Clock, catalog: Catalog) -> None:
        self._store = store
        self._vault = vault
        self._clock = clock
        self._catalog = catalog
        self._by_id: dict[str, VendorAccount] = {}
        self._by_provider: dict[str, list[VendorAccount]] = {}
        self._seen: str | None = None
        self._kept: dict[tuple[int, str], tuple[Candidate, Candidate]] = {}

    # ---------------------------------------------------------------------------------------------------- choosing

    def expand(self, candidates: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
        """The candidates, once more for each account of their providers that serves their model."""
        if not self._by_provider:
            return candidates
        found: list[Candidate] = []
        for candidate in candidates:
            if self._catalog.providers.has_own_credential(candidate.provider.slug):
                found.append(candidate)
            found += [
                self._with_account(candidate, account)
                for account in self._by_provider.get(candidate.provider.slug, ())
                if account.serves(candidate.model.id)
            ]
        return tuple(found)

    def _with_account(self, candidate: Candidate, account: VendorAccount) -> Candidate:
        """The candidate with an account: the same object each time, because it keeps what follows from it."""
        key = (id(candidate), account.id)
        kept = self._kept.get(key)
        if kept is None or kept[0] is not candidate:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            kept = self._kept[key] = (candidate, replace(candidate, account=account))
        return kept[1]

    def of_job(self, candidate: Candidate, account_id: str) -> Candidate | None:
        """The candidate with the account that started a job; None when that is gone."""
        if account_id:
            account = self._by_id.get(account_id)
            return None if account is None else replace(candidate, account=account)
        return candidate if self._catalog.providers.has_own_credential(candidate.provider.slug) else None

    def knows(self, account_id: str) -> bool:
        return account_id in self._by_id

    # ----------------------------------------------------------------------------------------------------- reading

    async def refresh(self) -> None:
        """Read the accounts again if somebody has changed them."""
        row = await self._store.one("get_fact", name=_CHANGED)
        seen = row["value"] if row else None
        if seen == self._seen:
            return
        rows = await self._store.all("list_accounts")
        self._by_id = {row["id"]: self._updated(row) for row in rows}
        self._by_provider = {}
        for account in self._by_id.values():
            self._by_provider.setdefault(account.provider, []).append(account)
        self._kept.clear()
        self._catalog.set_accounts(frozenset(self._by_provider))
        self._seen = seen

    def _updated(self, row: Row) -> VendorAccount:
        """The account of a row: the same object as before, which running jobs hold, with the new values."""
        values = {
            **row,
            "credential": self._vault.open(row["secret"], row["id"]).decode(),
            "models": None if row["models"] is None else tuple(msgspec.json.decode(row["models"])),
        }
        del values["secret"]
        known = self._by_id.get(row["id"])
        if known is None:
            return VendorAccount(**values)
        for name, value in values.items():
            setattr(known, name, value)
        return known

    def list_records(self) -> list[dict[str, Any]]:
        return [_record(account) for account in self._by_id.values()]

    def get_record(self, account_id: str) -> dict[str, Any]:
        """Raises NotFound."""
        if account_id not in self._by_id:
            raise _no_such(account_id)
        return _record(self._by_id[account_id])

    # ---------------------------------------------------------------------------------------------------- changing

    async def add(self, provider: str, credential: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """Add an account; raise InvalidRequest for a bad value and Conflict for a credential that is there already."""
        known = self._catalog.providers.known.get(provider)
        if known is None:
            raise InvalidRequest(f"`provider` names `{provider[:64]}`, which is not a provider.", param="provider")
        if known.key_env is None:
            raise InvalidRequest(f"{known.name} takes no credential.", param="provider")
        columns = {"name": "", "weight": 1, "priority": 0, "models": None, **_columns(options)}
        columns.pop("status", None)
        at_ms = self._clock.now_ms()
        account_id = new_id("acc", at_ms)
        secret = self._sealed(account_id, provider, credential)

        async def write(tx: Transaction) -> None:
            await self._touch(tx)
            if not await tx.run(
                "add_account", id=account_id, provider=provider, created_at_ms=at_ms, **columns, **secret
            ):
                raise _shared()

        await self._store.write(write)
        await self.refresh()
        return self.get_record(account_id)

    async def change(self, account_id: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """Change what is given; raise NotFound or InvalidRequest."""
        changes = _columns(options)

        async def write(tx: Transaction) -> None:
            await self._touch(tx)
            row = await tx.one("lock_account", id=account_id)
            if row is None:
                raise _no_such(account_id)
            row.pop("provider")
            await tx.run("set_account", **{**row, **changes})

        await self._store.write(write)
        await self.refresh()
        return self.get_record(account_id)

    async def rotate(self, account_id: str, credential: str) -> dict[str, Any]:
        """Replace the credential, for new jobs and for those that run: it must be of the same account at the vendor."""
        secret = self._sealed(account_id, self.get_record(account_id)["provider"], credential)

        async def write(tx: Transaction) -> None:
            await self._touch(tx)
            other = await tx.one("get_account_by_fingerprint", fingerprint=secret["fingerprint"])
            if other is not None and other["id"] != account_id:
                raise _shared()
            if not await tx.run("rotate_account", id=account_id, **secret):
                raise _no_such(account_id)

        await self._store.write(write)
        await self.refresh()
        return self.get_record(account_id)

    async def delete(self, account_id: str, *, drain: bool) -> dict[str, Any] | None:
        """Delete an account, and return None. While jobs that it started are open, raise Conflict, or with `drain` keep
        it for them only and return its record; its credential is erased after the last of them.
        """

        async def write(tx: Transaction) -> None:
            await self._touch(tx)
            row = await tx.one("lock_account", id=account_id)
            if row is None:
                raise _no_such(account_id)
            count = (await tx.one("count_open_attempts_of_account", id=account_id) or {"count": 0})["count"]
            if count and not drain:
                raise Conflict(
                    f"{account_id} has {count} open jobs, which only it can ask about. With `drain=true` it takes no "
                    "new ones, and is deleted after the last of them.",
                    should_retry=False,
                )
            row.pop("provider")
            await tx.run("set_account", **{**row, "status": "draining"})

        await self._store.write(write)
        await self.erase_drained()
        await self.refresh()
        return _record(self._by_id[account_id]) if account_id in self._by_id else None

    async def erase_drained(self) -> int:
        """Erase the credentials of draining accounts whose jobs have all ended; return how many."""
        erased = 0
        for row in await self._store.all("list_accounts"):
            if row["status"] == "draining":
                erased += await self._store.write(lambda tx, id_=row["id"]: self._erase(tx, id_))  # type: ignore[misc]
        return erased

    async def _erase(self, tx: Transaction, account_id: str) -> int:
        await self._touch(tx)
        await tx.one("lock_account", id=account_id)
        found = await tx.one("count_open_attempts_of_account", id=account_id)
        return await tx.run("erase_account", id=account_id) if found is not None and not found["count"] else 0

    async def _touch(self, tx: Transaction) -> None:
        """Let every process notice that something changes."""
        await tx.run("set_fact", name=_CHANGED, value=new_id("chg", self._clock.now_ms()))

    def _sealed(self, account_id: str, provider: str, credential: str) -> Row:
        """The columns of a credential; raise InvalidRequest if the provider cannot use it."""
        text = credential.strip()
        if not text or len(text) > MAX_CREDENTIAL_CHARS:
            message = f"`credential` must have 1 to {MAX_CREDENTIAL_CHARS} characters."
            raise InvalidRequest(message, param="credential")
        if problem := self._catalog.providers.known[provider].key_problem(text):
            raise InvalidRequest(f"`credential` is not usable: {problem}.", param="credential")
        if self._catalog.providers.keys.get(provider) == text:
            raise _shared()
        return {
            "secret": self._vault.seal(text.encode(), account_id),
            "fingerprint": self._vault.digest_key(f"{provider} {text}"),
            "last_four": text[-_LAST:] if len(text) >= 4 * _LAST else "",
        }


async def reseal_accounts(store: Store, vault: Vault) -> int:
    """Encrypt all credentials with the newest master secret; return how many were encrypted with an older one."""
    stale = [row for row in await store.slow("list_accounts") if not vault.is_current(row["secret"])]

    async def work(tx: Transaction) -> int:
        count = 0
        for row in sorted(stale, key=lambda row: str(row["id"])):
            secret = vault.seal(vault.open(row["secret"], row["id"]), row["id"])
            count += await tx.run("reseal_account", id=row["id"], seen=row["secret"], secret=secret)
        return count

    return await store.write(work)


def _record(account: VendorAccount) -> dict[str, Any]:
    return {
        "id": account.id,
        "object": "account",
        "provider": account.provider,
        "name": account.name,
        "status": account.status,
        "weight": account.weight,
        "priority": account.priority,
        "models": None if account.models is None else list(account.models),
        "last_four": account.last_four,
        "version": account.version,
        "created_at": iso(account.created_at_ms),
    }


def _columns(options: Mapping[str, Any]) -> Row:
    """The columns of the options that are given, checked; None stands for the default."""
    columns: Row = {}
    for name, low, high, default in (("weight", 1, MAX_WEIGHT, 1), ("priority", 0, MAX_PRIORITY, 0)):
        if name in options:
            columns[name] = value = default if options[name] is None else options[name]
            if type(value) is not int or not low <= value <= high:
                raise InvalidRequest(f"`{name}` must be a whole number from {low} to {high}.", param=name)
    if "name" in options:
        columns["name"] = name = options["name"] or ""
        if not isinstance(name, str) or len(name) > MAX_NAME_CHARS or not (name.isprintable()):
            raise InvalidRequest(f"`name` must have at most {MAX_NAME_CHARS} printable characters.", param="name")
    if options.get("status") is not None:
        columns["status"] = options["status"]
        if options["status"] not in STATUSES:
            raise InvalidRequest("`status` must be one of `on`, `off`.", param="status")
    if "models" in options:
        columns["models"] = _models_column(options["models"])
    return columns


def _models_column(models: Sequence[Any] | None) -> str | None:
    if models is None:
        return None
    if not 1 <= len(models) <= _MAX_MODELS or not all(isinstance(name, str) and name for name in models):
        message = f"`models` must be a list of 1 to {_MAX_MODELS} model ids; one may end with `*`."
        raise InvalidRequest(message, param="models")
    return msgspec.json.encode(list(models)).decode()


def _no_such(account_id: str) -> NotFound:
    return NotFound(f"No such account: {account_id[:64] if is_id(account_id, 'acc') else 'it is not an id'}.")


def _shared() -> Conflict:
    return Conflict("Another account has this credential already.", should_retry=False)
