"""Ten thousand reviews, valid, spoiled and hostile: each is answered, none is a bug, and lint says the same."""

import asyncio
import contextlib
import gc
import io
import json
import logging
import tracemalloc
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from random import Random
from time import process_time
from typing import Any

import pytest

from pyjobset.cli.main import main as command_line
from pyjobset.cli.scalars import integer
from pyjobset.cli.template_fields import field_problems
from pyjobset.controller.webhook import admission, pods
from pyjobset.controller.webhook.dry_run import SECONDS_MAX, DryRun
from pyjobset.controller.webhook.leaders import Leaders
from pyjobset.controller.webhook.review import CREATE, Request, decode, manifest
from pyjobset.controller.webhook.server import Judge, Look, answer
from pyjobset.errors import InvalidSpec, OutcomeUnknown, Problem
from pyjobset.kube.client import Client
from pyjobset.kube.requests import Request as Sent
from pyjobset.kube.responses import Response
from pyjobset.objects.meta import Manifest
from pyjobset.rules.validation import check, check_update
from pyjobset.simulation.clock import run
from tests.manifests import ALL_GATES, JOBSET
from tests.mutants import CREATED, Mutant, hostile, mutants, spoiled
from tests.reviews import body, patched
from tests.tables.test_webhook_leaders import caches
from tests.tables.test_webhook_pods import LEADER, Found

SEEDS = range(10)
REVIEWS_PER_SEED = 1000
ANSWER_BYTES_MAX = 512 * 1024
"""A hundred problems, each said twice."""

VALIDATE: Judge = partial(admission.validate, features=ALL_GATES)
KNOWING, IGNORANT = Found([LEADER]), Found(why="nobody knows")


class Unreliable:
    """An API server that does what none does: garbage, errors, silence. Sometimes it answers."""

    def __init__(self, random: Random) -> None:
        self._random = random

    async def send(self, request: Sent) -> Response:
        said = self._random.choice(
            [
                Response(201, request.body or b"{}"),
                Response(200, b'{"metadata": {"resourceVersion": "1"}, "items": [{"spec": 7}, null]}'),
                Response(200, self._random.randbytes(40)),
                Response(200, b"[" * 100_000),
                Response(403, b'{"kind": "Status", "message": {"a": 1}, "details": 7}'),
                Response(422, b"<html>\xff</html>"),
                Response(500, b""),
                OutcomeUnknown("POST: connection reset"),
                None,
            ]
        )
        if said is None:
            await asyncio.sleep(1_000)
            raise AssertionError("nobody waits that long")
        if isinstance(said, Exception):
            raise said
        return said

    def stream(self, *_: object) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        raise AssertionError("nothing is watched")

    async def close(self) -> None: ...


def read(response: Any, content: bytes) -> Manifest | None:
    """The response of the AdmissionReview as an API server takes it, or None for a Status that says what is wrong."""
    said: Manifest = json.loads(response.body)
    assert response.content_type == "application/json"
    assert len(response.body) <= ANSWER_BYTES_MAX
    if response.status != 200:
        assert response.status == 400
        assert (said["kind"], said["status"], said["code"]) == ("Status", "Failure", 400)
        assert 0 < len(said["message"]) < 400
        return None
    assert (said.pop("apiVersion"), said.pop("kind"), list(said)) == (
        "admission.k8s.io/v1",
        "AdmissionReview",
        ["response"],
    )
    answered: Manifest = said["response"]
    assert answered["uid"] == decode(content).uid
    if answered["allowed"] is not True:
        assert answered["allowed"] is False
        assert answered["status"]["code"] == 422, "a bug"
        assert answered["status"]["message"]
        assert "patch" not in answered
    assert all(warning.isprintable() and len(warning) < 1200 for warning in answered.get("warnings", ()))
    return answered


def problems_of(asked: Request) -> tuple[Problem, ...]:
    new = manifest(asked.object, "object")
    try:
        if asked.operation == CREATE:
            check(new, ALL_GATES)
        else:
            check_update(manifest(asked.old_object, "oldObject"), new, ALL_GATES)
    except InvalidSpec as invalid:
        return invalid.problems
    return ()


def said(answered: Manifest) -> list[tuple[str, str]]:
    causes = answered.get("status", {}).get("details", {}).get("causes", [])
    return [(cause["message"].rpartition("[")[2].removesuffix("]"), cause["field"]) for cause in causes]


async def ask(judge: Judge, content: bytes, look: Look | None = None) -> Manifest | None:
    return read(await answer(content, judge, look), content)


def again(asked: Request, changed: Manifest) -> bytes:
    """The review of the patched object, as the API server sends it to the next webhook."""
    kind = {"group": asked.kind.group, "version": asked.kind.version, "kind": asked.kind.kind}
    return body(changed, kind=kind, uid=asked.uid, name=asked.name, namespace=asked.namespace)


def document(asked: Request) -> Manifest:
    """What nobody reads may be no UTF-8."""
    found: Manifest = json.loads(bytes(asked.object).decode(errors="replace"))
    return found


async def judge_jobset(content: bytes, seen: Counter[str]) -> None:
    mutated, validated = await ask(admission.mutate, content), await ask(VALIDATE, content)
    if validated is None:
        seen["malformed"] += 1
        return
    asked = decode(content)
    if asked.operation not in ("CREATE", "UPDATE"):
        assert validated["allowed"]
        return
    new = manifest(asked.object, "object")
    metadata = new.get("metadata")
    if asked.operation == CREATE or not (isinstance(metadata, dict) and metadata.get("deletionTimestamp")):
        expected = [(problem.code, problem.path) for problem in problems_of(asked)]
        assert said(validated) == expected
        assert validated["allowed"] == (not expected)
    seen[f"{asked.operation} {'allowed' if validated['allowed'] else 'denied'}"] += 1
    assert mutated is not None
    assert mutated["allowed"]
    if "patch" not in mutated:
        return
    seen["patched"] += 1
    complete = again(asked, patched(document(asked), mutated))
    twice, after = await ask(admission.mutate, complete), await ask(VALIDATE, complete)
    assert twice is not None
    assert "patch" not in twice
    assert after == validated, "what is said of a JobSet does not depend on its defaults"


async def judge_pod(content: bytes, seen: Counter[str], lookup: pods.Lookup) -> None:
    for judge in (pods.mutate, pods.validate):
        refused = await ask(partial(judge, lookup=IGNORANT), content)
        known = await ask(partial(judge, lookup=KNOWING), content)
        unsure = await ask(partial(judge, lookup=lookup), content)
        if known is None:
            assert refused is None
            assert unsure is None
            seen["malformed pod"] += 1
            continue
        for answered in (refused, known, unsure):
            assert answered is not None
            if not answered["allowed"]:
                seen["pod denied"] += 1
                assert answered["status"]["message"].startswith("a pod that ")
                assert ": " in answered["status"]["message"]
        if "patch" in known:
            seen["pod patched"] += 1
            asked = decode(content)
            placed = patched(document(asked), known)
            twice = await ask(partial(judge, lookup=KNOWING), again(asked, placed))
            assert twice is not None
            assert patched(placed, twice) == placed


@pytest.mark.parametrize("seed", SEEDS)
def test_every_review_is_answered_as_the_rules_have_it(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    seen: Counter[str] = Counter()

    async def main() -> None:
        async with Client(Unreliable(Random(seed))) as client:
            leaders = Leaders(client, await caches(client))
            for mutant in mutants(seed, REVIEWS_PER_SEED):
                if mutant.is_pod:
                    await judge_pod(mutant.content, seen, leaders)
                else:
                    await judge_jobset(mutant.content, seen)

    run(main())
    kinds = ("malformed", "CREATE allowed", "CREATE denied", "UPDATE allowed", "UPDATE denied", "patched")
    assert all(seen[kind] > 20 for kind in (*kinds, "malformed pod", "pod denied", "pod patched")), seen
    assert [record for record in caplog.records if record.exc_info] == []


def test_a_server_that_hangs_fails_or_answers_garbage_lets_jobsets_through_with_a_warning() -> None:
    """What the trial of Job templates makes of it, each time within its second."""
    seen: Counter[str] = Counter()

    async def main() -> None:
        async with Client(Unreliable(Random(1))) as client:
            look, clock = DryRun(client, ALL_GATES), asyncio.get_running_loop().time
            for mutant in mutants(99, 2000):
                alone = None if mutant.is_pod else await ask(VALIDATE, mutant.content)
                if alone is None or not alone["allowed"]:
                    continue
                started = clock()
                tried = await ask(VALIDATE, mutant.content, look)
                assert clock() - started < SECONDS_MAX + 0.1
                assert tried is not None
                assert tried["allowed"]
                assert tried.get("warnings", [])[: len(alone.get("warnings", []))] == alone.get("warnings", [])
                seen["warned" if tried != alone else "silent"] += 1

    run(main())
    assert seen["warned"] > 50, seen
    assert seen["silent"] > 50, seen


def test_lint_says_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It knows more: what the schema has against templates, which the API server says before a webhook is asked."""
    random = Random(7)
    head = {"apiVersion": JOBSET["apiVersion"], "kind": "JobSet"}
    expected: dict[str, list[tuple[str, str]]] = {}
    in_templates = 0

    async def main() -> None:
        nonlocal in_templates
        for number in range(600):
            sent = spoiled(random, random.choice(CREATED), 2) | head
            file = tmp_path / f"{number:04}.json"
            file.write_text(json.dumps(sent))
            sent = json.loads(file.read_text(), parse_int=integer)  # beyond 64 bits a float, as the API server has it
            answered = await ask(VALIDATE, body(sent, name="js"))
            assert answered is not None
            found = said(answered)
            paths = {path for _, path in found}
            more = [(p.code, p.path) for p in field_problems(sent) if p.path not in paths]
            in_templates += len(more)
            if found or more:
                expected[str(file)] = found + more

    run(main())
    capsys.readouterr()
    with contextlib.redirect_stderr(io.StringIO()):
        gates = ",".join(f"{gate}=true" for gate in sorted(ALL_GATES))
        assert command_line(["lint", "-f", str(tmp_path), "-o", "json", "--feature-gates", gates]) == 3
    linted: dict[str, list[tuple[str, str]]] = {}
    for problem in json.loads(capsys.readouterr().out):
        linted.setdefault(problem["file"], []).append((problem["code"], problem["path"]))
    assert linted == expected
    assert 300 < len(linted) < 600
    assert in_templates > 20


HOSTILE = hostile()


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_review_is_answered_soon(what: str, caplog: pytest.LogCaptureFixture) -> None:
    """On CPU time, as multiples of work of the same kind: a machine may be slow or busy."""
    content = HOSTILE[what]
    started = process_time()
    for _ in range(3):
        json.dumps([{"a": [index]} for index in range(30_000)])
    unit = process_time() - started
    for judge in (admission.mutate, VALIDATE):
        started = process_time()
        read(asyncio.run(answer(content, judge)), content)
        assert process_time() - started < max(20 * unit, 1)
    assert [record for record in caplog.records if record.exc_info] == []


def test_memory_stays_as_it_is() -> None:
    """The same reviews once more leave nothing behind: what is kept is bounded, and was there after the first time."""
    sent = list(mutants(5, 400))

    async def judged(mutant: Mutant) -> None:
        judges = (pods.mutate, pods.validate) if mutant.is_pod else (admission.mutate, VALIDATE)
        for judge in judges:
            await ask(partial(judge, lookup=KNOWING) if mutant.is_pod else judge, mutant.content)

    async def all_judged() -> int:
        for mutant in sent:
            await judged(mutant)
        KNOWING.asked.clear()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    async def main() -> tuple[int, int]:
        await all_judged()
        return await all_judged(), await all_judged()

    logging.disable()
    tracemalloc.start()
    try:
        before, after = run(main())
    finally:
        tracemalloc.stop()
        logging.disable(logging.NOTSET)
    assert after - before < 20_000, f"{after - before} bytes for {len(sent)} reviews"
