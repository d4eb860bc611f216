"""The Job templates of a JobSet, tried on the API server before the JobSet is stored (decision 6). webhook.server asks.

Only the API server knows all that it refuses in a Job. Each distinct template is sent once, as the first Job that would
be made of it, with dryRun=All: nothing is stored, and no webhook of ours is asked about Jobs. What it calls invalid
refuses the JobSet. Whatever else happens (no right, a quota, a slow or absent server, somebody's webhook) is a warning.
"""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from pyjobset.compiler.jobs import child_jobs, compile_job
from pyjobset.compiler.scheduling import compile_scheduling
from pyjobset.controller.log import Log
from pyjobset.controller.webhook import denial
from pyjobset.controller.webhook.review import CREATE, UPDATE, Request, Response, manifest
from pyjobset.errors import JobSetError, Problem, Refused
from pyjobset.kube.client import AlreadyExists, Client
from pyjobset.objects.features import WORKLOAD_AWARE_SCHEDULING, Features
from pyjobset.objects.jobset import JobSet
from pyjobset.objects.meta import Manifest
from pyjobset.objects.resources import JOBS
from pyjobset.reconciler.decide import is_managed
from pyjobset.rules import registry
from pyjobset.rules.defaults import with_defaults
from pyjobset.rules.names import named
from pyjobset.rules.parse import PROBLEMS_MAX, read
from pyjobset.rules.rule import shortened

SECONDS_MAX = 1.0
"""For all templates of a JobSet together. The API server waits 10 s for a webhook, people wait for kubectl."""
PARALLEL_MAX = 50
REASON_LENGTH_MAX = 200
_VERDICTS = ((400, "BadRequest"), (422, "Invalid"))
_OF_ADMISSION = ('admission webhook "', "ValidatingAdmissionPolicy '")
"""Somebody else's admission said no, and may say yes to the controller: it is not the template that is wrong."""

log = Log(__name__)


@dataclass(frozen=True, slots=True)
class Trial:
    """One template: the Job to send, and the ReplicatedJobs that have it, by index."""

    job: Manifest
    indexes: tuple[int, ...]

    @property
    def path(self) -> str:
        return f"spec.replicatedJobs[{self.indexes[0]}].template"


class DryRun:
    """The look that webhook.server takes after the rules have allowed a JobSet."""

    def __init__(self, client: Client, features: Features) -> None:
        self._client = client
        self._features = features

    async def __call__(self, request: Request, allowed: Response) -> Response:
        """The denial, or `allowed`, with a warning where a template could not be tried."""
        tried = trials(request, self._features)
        if not tried:
            return allowed
        found = await self._outcomes(request, tried)
        problems = [problem for outcome in found if not isinstance(outcome, str) for problem in outcome]
        if problems:
            return denial.denied(request.uid, request.name, problems[:PROBLEMS_MAX])
        untried = [(trial, reason) for trial, reason in zip(tried, found, strict=True) if isinstance(reason, str)]
        said = tuple(_warnings(untried))
        if said:
            reason = _without_request(untried[0][1])
            log.info("Job templates not tried", jobset=f"{request.namespace}/{request.name}", reason=reason)
        return replace(allowed, warnings=allowed.warnings + said)

    async def _outcomes(self, request: Request, tried: list[Trial]) -> list[tuple[Problem, ...] | str]:
        """Of each trial its problems, or why it says nothing."""
        slots = asyncio.Semaphore(PARALLEL_MAX)
        tasks = [asyncio.create_task(self._outcome(request, trial, slots)) for trial in tried]
        try:
            await asyncio.wait(tasks, timeout=SECONDS_MAX)
        finally:
            for task in tasks:
                task.cancel()
        late = f"no answer within {SECONDS_MAX:g} s"
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        for outcome in ended:
            if isinstance(outcome, Exception):
                raise outcome
        return [late if isinstance(outcome, BaseException) else outcome for outcome in ended]

    async def _outcome(self, request: Request, trial: Trial, slots: asyncio.Semaphore) -> tuple[Problem, ...] | str:
        try:
            async with slots:
                await self._client.create(JOBS, request.namespace, trial.job, dry_run=True)
        except Refused as refused:
            return tuple(_problems(trial, refused)) if _is_verdict(refused) else refused.message
        except AlreadyExists as taken:  # found after the Job was seen to be valid
            return () if request.operation == UPDATE else taken.message
        except JobSetError as error:
            return error.message
        return ()


def trials(request: Request, features: Features) -> list[Trial]:
    """What is to be tried for a creation, or for an update that changed templates. Pure."""
    if request.operation not in (CREATE, UPDATE):
        return []
    jobset = _jobset(request.object, "object")
    if jobset is None or jobset.metadata.deletion_timestamp or not is_managed(jobset.spec.managed_by):
        return []
    old = _jobset(request.old_object, "oldObject") if request.operation == UPDATE else None
    known = {} if old is None else {r.name: r.template for r in old.spec.replicated_jobs}
    users: dict[bytes, list[int]] = {}
    for index, replicated_job in enumerate(jobset.spec.replicated_jobs):
        if replicated_job.replicas and known.get(replicated_job.name) != replicated_job.template:
            users.setdefault(msgspec.json.encode(replicated_job.template, order="sorted"), []).append(index)
    firsts = {indexes[0]: tuple(indexes) for indexes in users.values()}
    return list(_compiled(jobset, request.namespace, firsts, features)) if firsts else []


def _compiled(
    jobset: JobSet, namespace: str, firsts: dict[int, tuple[int, ...]], features: Features
) -> Iterator[Trial]:
    """With one replica of each ReplicatedJob: the work is bounded by the size of the manifest, not by its numbers."""
    metadata = replace(jobset.metadata, namespace=namespace)
    single = tuple(replace(r, replicas=min(r.replicas, 1)) for r in jobset.spec.replicated_jobs)
    jobset = replace(jobset, metadata=metadata, spec=replace(jobset.spec, replicated_jobs=single))
    scheduling = compile_scheduling(jobset) if WORKLOAD_AWARE_SCHEDULING in features else None
    indexes = {replicated_job.name: index for index, replicated_job in enumerate(single)}
    for child in child_jobs(jobset):
        index = indexes[child.replicated_job.name]
        if index in firsts:
            placement = scheduling.placement(*child.key) if scheduling else None
            job = compile_job(jobset, child, placement=placement, features=features, suspend=True)
            # The JobSet is not there yet: no owner could be named that the API server knows.
            unowned = {key: value for key, value in job["metadata"].items() if key != "ownerReferences"}
            yield Trial({**job, "metadata": unowned}, firsts[index])


def _jobset(raw: msgspec.Raw, what: str) -> JobSet | None:
    jobset, _ = read(manifest(raw, what))
    return None if jobset is None else named(with_defaults(jobset))


def _is_verdict(refused: Refused) -> bool:
    """The API server cannot read the Job (400), or finds it invalid (422). A proxy's page has no reason."""
    return (refused.code, refused.reason) in _VERDICTS and not any(words in refused.message for words in _OF_ADMISSION)


def _problems(trial: Trial, refused: Refused) -> Iterator[Problem]:
    rule = registry.JOB_TEMPLATE
    others = ", ".join(f"replicatedJobs[{index}]" for index in trial.indexes[1:4])
    same = f" (also in {others}{', ...' if len(trial.indexes) > 4 else ''})" if others else ""
    for field, message in refused.causes or (("", _without_request(refused.message)),):
        path = f"{trial.path}.{field}" if field else trial.path
        yield rule.at(path, None, f"{rule.summary}: {message}{same}")


def _warnings(untried: Iterable[tuple[Trial, str]]) -> Iterator[str]:
    """One for each reason."""
    rule = registry.JOB_TEMPLATE_UNTRIED
    by_reason: dict[str, list[Trial]] = {}
    for trial, reason in untried:
        by_reason.setdefault(shortened(_without_request(reason), REASON_LENGTH_MAX), []).append(trial)
    for reason, those in by_reason.items():
        more = f" (and {len(those) - 1} more)" if len(those) > 1 else ""
        problem = rule.at(those[0].path, None, f"{rule.summary}: {reason}")
        yield f"{problem.path}{more} {denial.sentence(problem)}"


def _without_request(message: str) -> str:
    """An error of the client begins with the request: `POST jobs.batch ns/name: `."""
    return message.partition(": ")[2] if message.startswith("POST ") else message
