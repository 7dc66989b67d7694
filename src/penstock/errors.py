"""Every error that a caller can see, with its status, type and code."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar, TypeVar

E = TypeVar("E", bound=BaseException)


def without_frames(error: E) -> E:
    """Return an error after its tracebacks were removed, and those of the errors before it.

    The frames of a traceback refer to what they worked on, such as the body of a call. If one of them also refers to
    the error, all of that stays in memory until the garbage collector finds it, which runs seldom. So an error that is
    kept, or was answered, must not refer to frames.
    """
    before: BaseException | None = error
    while before is not None:
        before.__traceback__ = None
        before = before.__cause__ or before.__context__
    return error


def quoted(names: Iterable[object]) -> str:
    """Names or values as error messages list them: `a`, `b`."""
    return ", ".join(f"`{name}`" for name in names)


class Problem(Exception):
    """Base of every error response; the code is the name of the class in capitals.

    A class that only code of the gateway distinguishes from its base has `same_code`: callers see an error of the base.
    """

    status: ClassVar[int] = 500
    type: ClassVar[str] = "api_error"
    code: ClassVar[str] = "INTERNAL_ERROR"

    def __init_subclass__(cls, *, same_code: bool = False) -> None:
        if not same_code:
            cls.code = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).upper()

    def __init__(
        self,
        message: str,
        *,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
        should_retry: bool | None = None,
        recorded: bool = False,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.headers = dict(headers or {})
        # OpenAI's clients repeat 408, 409, 429 and 5xx unless a header says otherwise; None sends no such header.
        self.should_retry = should_retry
        # True if the request has a record with this error: then the API adds none that says it was rejected.
        self.recorded = recorded
        # True if what was made is charged, although the caller does not get it.
        self.charges_outputs = False

    def body(self) -> dict[str, dict[str, str]]:
        """Return the JSON body of the response."""
        error = {"message": self.message, "type": self.type, "code": self.code}
        if self.param:
            error["param"] = self.param
        return {"error": error}


class InternalError(Problem):
    """A fault of the gateway. Details are in the log and never in the message."""

    def __init__(self, message: str = "The gateway failed to handle this request.") -> None:
        super().__init__(message, should_retry=False)


# ------------------------------------------------------------------------------------------------------------- callers


class AuthenticationFailed(Problem):
    """The key is missing, malformed, unknown or revoked; the message does not tell which."""

    status = 401
    type = "authentication_error"

    def __init__(self) -> None:
        super().__init__("A valid API key is required.", headers={"www-authenticate": "Bearer"}, should_retry=False)


class PermissionDenied(Problem):
    """The key may not make this call or use this model, or a signed URL has expired."""

    status = 403
    type = "permission_error"


class InsufficientBalance(Problem):
    """The call may cost more than the organization has available."""

    status = 402
    type = "insufficient_quota"


class RateLimited(Problem):
    """A limit of the key or the organization is reached, or the provider is busy."""

    status = 429
    type = "rate_limit_error"


class TooManyRequests(RateLimited, same_code=True):
    """The key has made as many requests in this minute as it may. Requests that have ended count as well."""


class BudgetReached(RateLimited, same_code=True):
    """The key or the organization with the id `budget_of`, or a label of this organization (its name and value), has
    spent what it may spend in this month.
    """

    def __init__(
        self, message: str, budget_of: str, *, headers: Mapping[str, str], label: tuple[str, str] | None = None
    ) -> None:
        super().__init__(message, headers=headers, should_retry=False)
        self.budget_of = budget_of
        self.label = label


class InvalidRequest(Problem):
    """A field is missing, or has a value that is not allowed here."""

    status = 400
    type = "invalid_request_error"


class InputsNotTaken(InvalidRequest, same_code=True):
    """The model takes other input files than those of the call; another model of the same id may take these."""


class ContentPolicyViolation(InvalidRequest):
    """A provider, or a guard of the operator, refused the prompt, the input or the output."""


class CallRefused(ContentPolicyViolation, same_code=True):
    """A guard of the operator refused a call before any provider was called."""


class OutputRefused(ContentPolicyViolation, same_code=True):
    """A guard of the operator refused what was made; it says beforehand whether that is charged."""

    def __init__(self, message: str, *, is_charged: bool) -> None:
        super().__init__(message, should_retry=False)
        self.charges_outputs = is_charged


class RequestTimeout(InvalidRequest):
    """The caller sent its request too slowly."""

    status = 408


class NotFound(InvalidRequest):
    """The path or the id does not exist, or belongs to another organization."""

    status = 404


class ModelNotFound(NotFound):
    """No model with this id can be called here."""


class ModelDisabled(NotFound):
    """The operator has switched the model off."""


class RecordingNotFound(NotFound):
    """No recording matches the call, which may only be replayed."""


class MethodNotAllowed(InvalidRequest):
    """The path exists, but not with this method."""

    status = 405


class Conflict(InvalidRequest):
    """What the call would change cannot be changed now, such as a request that still runs."""

    status = 409


class IdempotencyInProgress(Conflict):
    """The first call with this idempotency key still runs."""


class IdempotencyCompleted(Conflict):
    """The first call with this idempotency key was charged, and its response is not stored."""


class PayloadTooLarge(InvalidRequest):
    """The body, or a file in it, is larger than allowed."""

    status = 413


class StorageQuotaExceeded(PayloadTooLarge):
    """The organization has stored as many bytes of files as the setting `storage_bytes_per_org` allows."""

    type = "insufficient_quota"


class UnsupportedMediaType(InvalidRequest):
    """The path does not take bodies of this content type."""

    status = 415


class UnprocessableRequest(InvalidRequest):
    """A provider understood the request and found a value in it that it does not take."""

    status = 422


class HeadersTooLarge(InvalidRequest):
    """The headers of the call are larger than allowed."""

    status = 431


# ----------------------------------------------------------------------------------------------------------- upstream


class UpstreamProblem(Problem):
    """Base of errors at a provider, or on the way to it."""

    status = 502


class AllProvidersExhausted(UpstreamProblem):
    """Every provider of the model failed."""


class UpstreamError(UpstreamProblem):
    """The provider that the call names failed, or one after which no other may be tried."""


class UpstreamOutcomeUnknown(UpstreamProblem):
    """Whether a provider has done the work is unknown, so it is not asked again: the error code of a video, and of a
    call that repeats an idempotency key.
    """


class UpstreamTimeout(UpstreamProblem):
    """The provider took too long, or has not finished while the caller waited."""

    status = 504


class StorageUnavailable(Problem):
    """The database or the storage cannot be written; nothing is charged."""

    status = 503


class ProvenanceUnavailable(Problem):
    """The output was made, but could not get the Content Credentials that the call requires; nothing is charged."""

    status = 503


class DeliveryFailed(Problem):
    """The output was made and is charged, but could not be copied into the bucket that the call requires."""

    status = 502

    def __init__(self, message: str) -> None:
        super().__init__(message, should_retry=False)
        self.charges_outputs = True


class _NothingSent:
    """Lets callers retry after a StorageUnavailable in its block."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trail: object) -> None:
        if isinstance(error, StorageUnavailable) and error.should_retry is None:
            error.should_retry = True


_NOTHING_SENT = _NothingSent()


def nothing_sent() -> _NothingSent:
    """Let a caller retry after a StorageUnavailable in this block, where nothing is sent to a provider.

    Not if the transaction may be committed: then the problem says already that the call must not be repeated.
    """
    return _NOTHING_SENT


class Unavailable(Problem):
    """This process takes no more calls: it is stopping, or it has too many connections."""

    status = 503

    def __init__(self, message: str, *, should_retry: bool = True) -> None:
        super().__init__(message, headers={"retry-after": "1"}, should_retry=should_retry)


class Cancelled(Problem):
    """Not an HTTP error, but the error code of a cancelled video."""

    status = 409

    def __init__(self, message: str = "The generation was cancelled.") -> None:
        super().__init__(message)


def problem_kinds(kind: type[Problem] = Problem) -> Iterator[type[Problem]]:
    """Yield the class of each code that a caller can see; classes that only group others are called ...Problem."""
    for each in kind.__subclasses__():
        if "code" in vars(each) and not each.__name__.endswith("Problem"):
            yield each
        yield from problem_kinds(each)
