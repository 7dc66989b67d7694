"""How an attempt at a provider fails: for sure, or with an unknown outcome."""

from penstock.providers.spec import FailureKind


class AttemptFailed(Exception):
    """The provider refused or failed, or received nothing: another provider may be tried."""

    def __init__(
        self,
        provider: str,
        kind: FailureKind,
        message: str,
        *,
        status: int | None = None,  # of the HTTP response, if that was the failure
        sent: bool = True,
        retry_after_seconds: float | None = None,
        cost_usd: str | None = None,  # what the provider reports that it bills nevertheless
        words: str = "",  # the provider's own, where the message hides them from callers
    ) -> None:
        super().__init__(message)
        self.provider = provider
        self.kind = kind
        self.cost_usd = cost_usd
        self.message = message
        self.words = words
        self.status = status
        self.sent = sent
        self.retry_after_seconds = retry_after_seconds


class OutcomeUnknown(Exception):
    """The request was sent and no usable response came: the provider may be working on it, so do not send it again."""

    def __init__(self, provider: str, message: str, *, timeout: bool) -> None:
        super().__init__(message)
        self.provider = provider
        self.message = message
        self.timeout = timeout
