"""The accounts at vendors: read from the store, changed by operators, and offered as candidates."""

from collections.abc import Mapping
from functools import partial
from math import inf
from typing import Any

import msgspec

from penstock.audit_log import Act, Note, changed, write_audited
from penstock.clock import Clock
from penstock.errors import Conflict, InvalidRequest, NotFound
from penstock.models.account_values import (
    MAX_CREDENTIAL_CHARS,
    NEW_ACCOUNT,
    account_columns,
    account_facts,
    account_record,
)
from penstock.models.catalog import Catalog
from penstock.models.own_accounts import by_account, takes_own_accounts
from penstock.settings import Settings
from penstock.store.base import Row, Store, Transaction
from penstock.upstream.account_limits import AccountLimits, AccountUse
from penstock.upstream.candidate import Candidate
from penstock.upstream.failures import Failure
from penstock.upstream.vendor_account import VendorAccount
from penstock.values import OrgId, is_id, month_text, new_id
from penstock.vault import Vault

SHARE_SECONDS = 5.0  # how often processes tell each other how they use the accounts
_USE_MS = 15_000  # how long what a process has told is true
_SPEND_SECONDS = 5.0  # how old the sums of dollars may be that limits are compared with
_REFUSED = (401, 402, 403)  # statuses by which a vendor refuses an account, whatever was asked
REFRESH_SECONDS = 1.0  # other processes notice a change within two seconds
_CHANGED = "accounts changed"  # the fact that each change sets anew
_LAST = 4
_MOST_KEPT = 4096  # candidates with accounts in memory


Owner = OrgId | None
ANYBODY: Owner = None  # the operator, who may change the accounts of all


class VendorAccounts:
    """The accounts of this installation, as this process knows them."""

    def __init__(self, store: Store, vault: Vault, clock: Clock, catalog: Catalog, settings: Settings) -> None:
        self._settings = settings
        self._store = store
        self._vault = vault
        self._clock = clock
        self._catalog = catalog
        self._by_id: dict[str, VendorAccount] = {}
        self._by_provider: dict[str, list[VendorAccount]] = {}
        self._seen: str | None = None
        self._spends_read_at = -inf
        self._unwritten: dict[str, int | None] = {}  # by id: with which status an account was refused; None: no more
        self._kept: dict[tuple[int, str], tuple[Candidate, Candidate]] = {}

    # ---------------------------------------------------------------------------------------------------- choosing

    def expand(self, candidates: tuple[Candidate, ...], org_id: OrgId) -> tuple[Candidate, ...]:
        """The candidates, once more for each account of their providers that serves their model: those of the
        organization, and those of the operator unless it has one of its own, which must allow that.
        """
        if not self._by_provider:
            if not self._settings.own_accounts:
                return candidates
            return tuple(each for each in candidates if self._has_credential(each))
        own, shared = list[Candidate](), list[Candidate]()
        has_own, may_fall_back = False, True
        for candidate in candidates:
            if self._has_credential(candidate):
                shared.append(candidate)
            for account in self._by_provider.get(candidate.provider.slug, ()):
                if account.org_id not in (None, org_id) or not account.serves(candidate.model.id):
                    continue
                if account.org_id is not None:
                    has_own, may_fall_back = True, may_fall_back and account.fallback_to_shared
                if not account.is_spent:
                    (shared if account.org_id is None else own).append(self._with_account(candidate, account))
        return tuple(own) if has_own and not may_fall_back else (*own, *shared)

    def _has_credential(self, candidate: Candidate) -> bool:
        return self._catalog.providers.has_own_credential(candidate.provider.slug)

    def _with_account(self, candidate: Candidate, account: VendorAccount) -> Candidate:
        """The candidate with an account: the same object each time, because it keeps what follows from it."""
        key = (id(candidate), account.id)
        kept = self._kept.get(key)
        if kept is None or kept[0] is not candidate:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            kept = self._kept[key] = (candidate, by_account(candidate, account, self._fee_percent(account)))
        return kept[1]

    def _fee_percent(self, account: VendorAccount) -> int | None:
        """The part of the list price that calls by an account cost; None for the whole: by the operator's."""
        if account.org_id is None:
            return None
        return self._settings.own_account_fee_percent if account.fee_percent is None else account.fee_percent

    def of_job(self, candidate: Candidate, account_id: str, fee_percent: int | None) -> Candidate | None:
        """The candidate with the account that started a job, at the fee of then; None when that is gone."""
        if account_id:
            account = self._by_id.get(account_id)
            return None if account is None else by_account(candidate, account, fee_percent)
        return candidate if self._catalog.providers.has_own_credential(candidate.provider.slug) else None

    def knows(self, account_id: str) -> bool:
        return account_id in self._by_id

    # ------------------------------------------------------------------------------------------------------ learning

    def note_failure(self, candidate: Candidate, failure: Failure) -> None:
        """Learn from a failed attempt: that the account is refused, or that the vendor was sent too much."""
        account = candidate.account
        if account is None:
            return
        if failure.status in _REFUSED and not failure.accepted:
            account.failed_status, account.failed_at_ms = failure.status, self._clock.now_ms()
            self._unwritten[account.id] = failure.status
        elif failure.kind == "busy" and failure.sent:
            is_concurrency = "concurren" in f"{failure.message} {failure.words}".lower()
            account.limits.refuse(failure.retry_after_seconds, is_concurrency=is_concurrency)

    def note_success(self, candidate: Candidate) -> None:
        """An account that serves a call is not refused."""
        account = candidate.account
        if account is not None and account.failed_status is not None:
            account.failed_status = account.failed_at_ms = None
            self._unwritten[account.id] = None

    async def share_use(self, process_id: str) -> None:
        """Tell the other processes how this one uses the accounts, and learn it of them."""
        now_ms = self._clock.now_ms()
        since_ms = now_ms - _USE_MS
        rows = [
            {"account_id": account.id, "process_id": process_id, "at_ms": now_ms, "use": _text(account)}
            for account in sorted(self._by_id.values(), key=lambda account: account.id)
        ]

        async def write(tx: Transaction) -> None:
            await tx.run("remove_account_use", since_ms=since_ms)
            await tx.put_many("set_account_use", rows)

        if not rows:
            return
        await self._store.write(write)
        others = dict[str, list[AccountUse]]()
        for row in await self._store.all("list_account_use", process_id=process_id, since_ms=since_ms):
            others.setdefault(row["account_id"], []).append(msgspec.json.decode(row["use"], type=AccountUse))
        for account in self._by_id.values():
            account.limits.follow(others.get(account.id, []))

    # ----------------------------------------------------------------------------------------------------- reading

    async def refresh(self) -> None:
        """Write what was learned of accounts, and read them again if somebody has changed them."""
        await self._write_failures()
        if self._by_id and self._clock.monotonic() - self._spends_read_at >= _SPEND_SECONDS:
            await self._read_spends()
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
        await self._read_spends()
        shared = (account.provider for account in self._by_id.values() if account.org_id is None)
        self._catalog.set_accounts(frozenset(shared))
        self._seen = seen

    async def _write_failures(self) -> None:
        unwritten, self._unwritten = self._unwritten, {}
        for account_id, status in sorted(unwritten.items()):
            account = self._by_id.get(account_id)
            if account is not None:
                at_ms = account.failed_at_ms if status is not None else None
                await self._store.write(partial(self._set_failure, account, status, at_ms))

    async def _set_failure(
        self, account: VendorAccount, status: int | None, at_ms: int | None, tx: Transaction
    ) -> None:
        await self._touch(tx)
        values = {"id": account.id, "version": account.version}
        await tx.run("set_account_failure", **values, failed_status=status, failed_at_ms=at_ms)

    async def _read_spends(self) -> None:
        """Read what was spent this month, for the limits in dollars and for the list."""
        rows = await self._store.all("list_account_spend", month=month_text(self._clock.now_ms()))
        spends = {row["account_id"]: row["spent"] for row in rows}
        for account in self._by_id.values():
            account.spent = spends.get(account.id, 0)
        self._spends_read_at = self._clock.monotonic()

    def _updated(self, row: Row) -> VendorAccount:
        """The account of a row: the same object as before, which running jobs hold, with the new values."""
        values = {
            **row,
            "credential": self._vault.open(row["secret"], row["id"]).decode(),
            "models": None if row["models"] is None else tuple(msgspec.json.decode(row["models"])),
            "fallback_to_shared": bool(row["fallback_to_shared"]),
        }
        del values["secret"]
        known = self._by_id.get(row["id"])
        if known is None:
            return VendorAccount(**values, limits=AccountLimits(self._clock))
        if known.version != row["version"] or known.status != row["status"]:
            known.limits.forget()
        for name, value in values.items():
            setattr(known, name, value)
        return known

    def list_records(self, owner: Owner = ANYBODY) -> list[dict[str, Any]]:
        return [account_record(account) for account in self._by_id.values() if _is_of(account.org_id, owner)]

    def names(self, owner: Owner = ANYBODY) -> dict[str, str]:
        """The names of the accounts, by their ids."""
        return {account.id: account.name for account in self._by_id.values() if _is_of(account.org_id, owner)}

    def get_record(self, account_id: str, owner: Owner = ANYBODY) -> dict[str, Any]:
        """Raises NotFound, also for an account of somebody else."""
        account = self._by_id.get(account_id)
        if account is None or not _is_of(account.org_id, owner):
            raise _no_such(account_id)
        return account_record(account)

    # ---------------------------------------------------------------------------------------------------- changing

    async def add(
        self, provider: str, credential: str, options: Mapping[str, Any], owner: Owner = ANYBODY
    ) -> dict[str, Any]:
        """Add an account of the owner, or of the operator for anybody; raise InvalidRequest for a bad value and
        Conflict for a credential that is there already.
        """
        known = self._catalog.providers.known.get(provider)
        if known is None:
            raise InvalidRequest(f"`provider` names `{provider[:64]}`, which is not a provider.", param="provider")
        if known.key_env is None:
            raise InvalidRequest(f"{known.name} takes no credential.", param="provider")
        if owner is not ANYBODY and not takes_own_accounts(self._settings, known):
            message = f"The operator of this gateway does not take accounts of organizations at {known.name}."
            raise InvalidRequest(message, param="provider")
        if owner and await self._store.one("get_org", id=owner) is None:
            raise InvalidRequest("`org_id` names no organization.", param="org_id")
        columns = {**NEW_ACCOUNT, **account_columns(options), "org_id": owner or None}
        columns.pop("status", None)
        at_ms = self._clock.now_ms()
        account_id = new_id("acc", at_ms)
        secret = self._sealed(account_id, provider, credential)

        async def write(tx: Transaction, note: Note) -> None:
            await self._touch(tx)
            if not await tx.run(
                "add_account", id=account_id, provider=provider, created_at_ms=at_ms, **columns, **secret
            ):
                raise _shared()
            facts = account_facts({"provider": provider, **columns, **secret})
            note(Act("account.added", account_id, OrgId(owner) if owner else None, after=facts))

        await write_audited(self._store, self._clock.now_ms(), write)
        await self.refresh()
        return self.get_record(account_id)

    async def change(self, account_id: str, options: Mapping[str, Any], owner: Owner = ANYBODY) -> dict[str, Any]:
        """Change what is given; raise NotFound or InvalidRequest."""
        changes = account_columns(options)

        async def write(tx: Transaction, note: Note) -> None:
            await self._touch(tx)
            row, org_id = await _locked(tx, account_id, owner)
            await tx.run("set_account", **{**row, **changes})
            note(changed("account.changed", account_id, org_id, account_facts(row), account_facts({**row, **changes})))

        await write_audited(self._store, self._clock.now_ms(), write)
        await self.refresh()
        return self.get_record(account_id)

    async def rotate(self, account_id: str, credential: str, owner: Owner = ANYBODY) -> dict[str, Any]:
        """Replace the credential, for new jobs and for those that run: it must be of the same account at the vendor."""
        secret = self._sealed(account_id, self.get_record(account_id, owner)["provider"], credential)

        async def write(tx: Transaction, note: Note) -> None:
            await self._touch(tx)
            _, org_id = await _locked(tx, account_id, owner)
            other = await tx.one("get_account_by_fingerprint", fingerprint=secret["fingerprint"])
            if other is not None and other["id"] != account_id:
                raise _shared()
            await tx.run("rotate_account", id=account_id, **secret)
            after = {"credential": "changed", "last_four": secret["last_four"]}
            note(Act("account.rotated", account_id, org_id, after=after))

        await write_audited(self._store, self._clock.now_ms(), write)
        await self.refresh()
        return self.get_record(account_id)

    async def delete(self, account_id: str, *, drain: bool, owner: Owner = ANYBODY) -> dict[str, Any] | None:
        """Delete an account, and return None. While jobs that it started are open, raise Conflict, or with `drain` keep
        it for them only and return its record; its credential is erased after the last of them.
        """

        async def write(tx: Transaction, note: Note) -> None:
            await self._touch(tx)
            row, org_id = await _locked(tx, account_id, owner)
            count = (await tx.one("count_open_attempts_of_account", id=account_id) or {"count": 0})["count"]
            if count and not drain:
                raise Conflict(
                    f"{account_id} has {count} open jobs, which only it can ask about. With `drain=true` it takes no "
                    "new ones, and is deleted after the last of them.",
                    should_retry=False,
                )
            await tx.run("set_account", **{**row, "status": "draining"})
            note(Act("account.deleted", account_id, org_id, after={"open_jobs": count}))

        await write_audited(self._store, self._clock.now_ms(), write)
        await self.erase_drained()
        await self.refresh()
        return account_record(self._by_id[account_id]) if account_id in self._by_id else None

    async def erase_drained(self) -> int:
        """Erase the credentials of draining accounts whose jobs have all ended; return how many."""
        erased = 0
        for row in await self._store.all("list_accounts"):
            if row["status"] == "draining":
                erased += await write_audited(self._store, self._clock.now_ms(), partial(self._erase, row["id"]))
        return erased

    async def _erase(self, account_id: str, tx: Transaction, note: Note) -> int:
        await self._touch(tx)
        await tx.one("lock_account", id=account_id)
        found = await tx.one("count_open_attempts_of_account", id=account_id)
        if found is None or found["count"] or not await tx.run("erase_account", id=account_id):
            return 0
        note(Act("account.erased", account_id, after={"credential": "erased"}))
        return 1

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


def _is_of(org_id: OrgId | None, owner: Owner) -> bool:
    return owner is ANYBODY or org_id == owner


async def _locked(tx: Transaction, account_id: str, owner: Owner) -> tuple[Row, OrgId | None]:
    """The values of an account that is locked, and whose it is. Raises NotFound, also for one of somebody else."""
    row = await tx.one("lock_account", id=account_id)
    if row is None or not _is_of(row["org_id"], owner):
        raise _no_such(account_id)
    row.pop("provider")
    return row, row.pop("org_id")


def _text(account: VendorAccount) -> str:
    return msgspec.json.encode(account.limits.use()).decode()


def _no_such(account_id: str) -> NotFound:
    return NotFound(f"No such account: {account_id[:64] if is_id(account_id, 'acc') else 'it is not an id'}.")


def _shared() -> Conflict:
    return Conflict("Another account has this credential already.", should_retry=False)
