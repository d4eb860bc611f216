"""The errors of pyjobset, sorted by who must act. Every package raises these and no library's own.

    JobSetError
    |-- InvalidSpec       the author of a manifest: every problem at once, each with code, path, value, hint
    |-- UsageError        the person at the terminal: a wrong flag, file or name
    |-- Raced             nobody: the world moved, observe again
    |-- Unavailable       nobody yet: wait and try again
    |   `-- PlaneError    the owner of this machine: the local control plane cannot run
    |-- OutcomeUnknown    nobody: the request may have happened, observe from the server
    |-- NotLeading        nobody: another replica writes
    |-- Refused           the cluster's administrator: rights, quota, admission, an absent API or gate
    `-- ForeignObject     the owner of an object that has the name we need

A message says what happened, the value seen and the path; `hint` says what to do. Library errors are chained.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with an input. `path` is a field path such as `spec.replicatedJobs[0].name`."""

    code: str
    path: str
    value: object
    message: str
    hint: str = ""

    def __str__(self) -> str:
        value = "" if self.value is None else f" (got {self.value!r})"
        hint = f". {self.hint}" if self.hint else ""
        return f"{self.path}: {self.message}{value}{hint} [{self.code}]"


class JobSetError(Exception):
    """The root. `exit_code` is what a command-line program ends with (design: 3, 4 and 5; 2 is wrong usage)."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class InvalidSpec(JobSetError):
    """An object breaks a rule. `problems` is never empty and lists all of them."""

    exit_code = 3

    def __init__(self, problems: Sequence[Problem], *, subject: str = "the JobSet") -> None:
        assert problems
        self.problems = tuple(problems)
        self.subject = subject
        super().__init__(f"{subject} is invalid: " + "; ".join(str(p) for p in self.problems))


class UsageError(JobSetError):
    """A command line, file or name that cannot be used."""

    exit_code = 2


class Raced(JobSetError):
    """409 Conflict, AlreadyExists of ours, 404 on delete, 410 Gone: observe again at once."""

    exit_code = 4


class Unavailable(JobSetError):
    """Refused connection, 5xx, 429. `retry_after_seconds` is the server's own wish, when it has one."""

    exit_code = 5

    def __init__(self, message: str, *, hint: str = "", retry_after_seconds: float | None = None) -> None:
        super().__init__(message, hint=hint)
        self.retry_after_seconds = retry_after_seconds


class PlaneError(Unavailable):
    """The local control plane cannot be built, started or reached on this machine."""


class OutcomeUnknown(JobSetError):
    """The connection broke or timed out after the request was sent: it may have happened."""

    exit_code = 5


class NotLeading(JobSetError):
    """This replica is not the leader, or cannot know any more that it is: it must not write."""


class Refused(JobSetError):
    """The API server understood and said no: 401, 403, 404 of a resource type, 422, quota, admission.

    `code` is the HTTP status and `reason` the Status reason, for example `Forbidden` or `Invalid`. `causes` are the
    field paths and messages of an invalid object, where the API server told them one by one.
    """

    exit_code = 4

    def __init__(
        self,
        message: str,
        *,
        code: int = 0,
        reason: str = "",
        hint: str = "",
        causes: Sequence[tuple[str, str]] = (),
    ) -> None:
        super().__init__(message, hint=hint)
        self.code = code
        self.reason = reason
        self.causes = tuple(causes)


class NotFound(Refused):
    """404 on a get or patch of one object."""


class ForeignObject(JobSetError):
    """An object that another owner controls has the name that ours must have. It is never touched."""

    exit_code = 4

    def __init__(self, message: str, *, kind: str, namespace: str, name: str, owner: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.kind = kind
        self.namespace = namespace
        self.name = name
        self.owner = owner
