"""The environment variables of the agent, as one frozen value. Read once by agent.program; names are the original's.

A pod whose agent is set up wrongly can only say so in its log: every problem is named at once, one a line, with the
variable, its value and what to do. An empty variable counts as not set.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyjobset.errors import UsageError
from pyjobset.objects.names import is_dns_subdomain

JOBSET_NAME = "JOBSET_NAME"
POD_NAME = "POD_NAME"
WORKER_COMMAND = "WORKER_COMMAND"
PROBE_PATH = "STARTUP_PROBE_PATH"
PROBE_PORT = "STARTUP_PROBE_PORT"
EXIT_CODE = "IN_PLACE_RESTART_EXIT_CODE"
SHELL = "SHELL"

DEFAULTS = {SHELL: "bash", PROBE_PATH: "/barrier-is-down", PROBE_PORT: "8081", EXIT_CODE: "1"}

_SOURCES = {
    JOBSET_NAME: "metadata.annotations['jobset.sigs.k8s.io/jobset-name']",
    POD_NAME: "metadata.name",
}
"""The field of the pod that a variable is set from."""


@dataclass(frozen=True, slots=True)
class Settings:
    jobset: str
    pod: str
    worker_command: str
    """Run by the shell once the barrier is down. Empty: the agent is a sidecar, the worker has its own container."""
    shell: str
    probe_path: str
    probe_port: int
    restart_exit_code: int


def settings(environment: Mapping[str, str]) -> Settings:
    """Raises UsageError."""
    given = {name: value for name, value in environment.items() if value}
    problems = list(_problems(given))
    if problems:
        raise UsageError("\n".join(problems))
    all_ = DEFAULTS | given
    return Settings(
        jobset=given[JOBSET_NAME],
        pod=given[POD_NAME],
        worker_command=given.get(WORKER_COMMAND, ""),
        shell=all_[SHELL],
        probe_path=all_[PROBE_PATH],
        probe_port=int(all_[PROBE_PORT]),
        restart_exit_code=int(all_[EXIT_CODE]),
    )


def _problems(given: Mapping[str, str]) -> Iterator[str]:
    for name, source in _SOURCES.items():
        if name not in given:
            yield f"{name} is not set: set it from the pod's field {source}"
        elif not is_dns_subdomain(given[name]):
            yield f"{name}={given[name]!r} is not a name: set it from the pod's field {source}"
    for name in (PROBE_PATH, PROBE_PORT):
        if name in given and WORKER_COMMAND in given:
            yield (
                f"{name}={given[name]!r} cannot be combined with {WORKER_COMMAND}: leave {name} out to run the worker "
                f"here, or {WORKER_COMMAND} to be a sidecar"
            )
    path = given.get(PROBE_PATH, "/")
    if not (path.startswith("/") and path.isascii() and path.isprintable() and not set(path) & set(" ?#")):
        yield f"{PROBE_PATH}={path!r} is not a path: write one that begins with /, without a query"
    for name, most in ((PROBE_PORT, 65535), (EXIT_CODE, 255)):
        value = given.get(name, "1")
        if not (value.isascii() and value.isdigit() and len(value) <= 5 and 1 <= int(value) <= most):
            yield f"{name}={value!r} is not a number from 1 to {most}: correct it"
