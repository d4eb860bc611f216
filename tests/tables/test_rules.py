"""The table of admission rules: complete, and proved by cases. And how rules work together on one manifest."""

from pathlib import Path

import pytest
import yaml

from pyjobset.errors import InvalidSpec
from pyjobset.objects import features as gates
from pyjobset.rules import registry
from pyjobset.rules.parse import PROBLEMS_MAX, parse
from pyjobset.rules.rule import Rule
from pyjobset.rules.validation import check, validate_update, warnings
from tests.manifests import (
    ABSENT,
    ALL_GATES,
    DRIVER,
    ENTRIES,
    JOBSET,
    RULE,
    WORKERS,
    edited,
    entry,
    problems_of_create,
    seen,
)
from tests.tables import test_rules_create, test_rules_scheduling, test_rules_schema, test_rules_update

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_every_rule_has_a_case_and_every_case_a_rule() -> None:
    creates = [*test_rules_schema.CASES, *test_rules_create.CASES, *test_rules_scheduling.CASES]
    cases = [*creates, *test_rules_update.CHANGES, *test_rules_update.WARNINGS]
    elsewhere = {code for code, rule in registry.RULES.items() if rule.stage == "cluster"}  # tables/test_dry_run.py
    assert {case.code for case in cases} == set(registry.RULES) - elsewhere


def test_codes_say_the_same_as_their_constants() -> None:
    constants = {name: value for name, value in vars(registry).items() if isinstance(value, Rule)}
    assert [rule.code.replace("-", "_").upper() for rule in constants.values()] == list(constants)


def manifests_of_examples() -> list[tuple[str, dict[str, object]]]:
    return [
        (path.name, document)
        for path in sorted(EXAMPLES.rglob("*.yaml"))
        for document in yaml.safe_load_all(path.read_text(encoding="utf-8"))
        if document and document["kind"] == "JobSet"
    ]


@pytest.mark.parametrize(("name", "manifest"), manifests_of_examples())
def test_examples_pass_without_a_word(name: str, manifest: dict[str, object]) -> None:
    on = (gates.WORKLOAD_AWARE_SCHEDULING, gates.IN_PLACE_RESTART, gates.RESTART_JOB)
    features = gates.resolve(dict.fromkeys(on, True))
    jobset = check(manifest, features)
    assert warnings(jobset, features) == ()
    assert validate_update(parse(manifest), jobset, features) == ()


def test_the_examples_are_there() -> None:
    assert len(manifests_of_examples()) >= 14


def test_all_problems_at_once() -> None:
    edits = {
        "spec.suspended": True,
        f"{DRIVER}.replicas": -1,
        f"{WORKERS}.groupName": "G",
        RULE: {"action": "Restart", "onJobFailureMessagePatterns": ["("]},
        ENTRIES: [entry("driver")],
    }
    assert set(seen(problems_of_create(edits, ALL_GATES))) == {
        ("unknown-field", "spec.suspended"),
        ("too-small", f"{DRIVER}.replicas"),
        ("group-name", f"{WORKERS}.groupName"),
        ("unsupported-value", f"{RULE}.action"),
        ("message-pattern", f"{RULE}.onJobFailureMessagePatterns[0]"),
        ("not-targeted", f"{WORKERS}.name"),
    }


def test_the_number_of_problems_is_bounded() -> None:
    labels = {f"a b{i}": "c" for i in range(1000)}
    assert len(problems_of_create({"metadata.labels": labels}, ALL_GATES)) == PROBLEMS_MAX
    fields = {f"spec.field{i}": 1 for i in range(1000)}
    assert len(problems_of_create(fields, ALL_GATES)) == PROBLEMS_MAX


@pytest.mark.parametrize(
    ("edits", "problem"),
    [
        (
            {"spec.replicatedJob": []},
            "spec.replicatedJob: is not a field of the API. did you mean replicatedJobs? [unknown-field]",
        ),
        (
            {f"{DRIVER}.parallelism": 2},
            (
                f"{DRIVER}.parallelism: is not a field of the API. "
                "it is a field of spec.replicatedJobs[].template.spec [unknown-field]"
            ),
        ),
        (
            {f"{DRIVER}.replicas": "2"},
            f"{DRIVER}.replicas: must be an integer, not a string (got '2'). write 2 without quotes [wrong-type]",
        ),
        (
            {"metadata.annotations": {"a": True}},
            'metadata.annotations.a: must be a string, not a boolean (got True). put it in quotes: "true" [wrong-type]',
        ),
        (
            {"spec.successPolicy": {"operator": "any"}},
            "spec.successPolicy.operator: must be All or Any (got 'any'). did you mean Any? [unsupported-value]",
        ),
        (
            {"spec.coordinator.replicatedJob": "worker"},
            (
                "spec.coordinator.replicatedJob: names no ReplicatedJob of this JobSet (got 'worker'). "
                "did you mean workers? [unknown-replicated-job]"
            ),
        ),
        (
            {RULE: {"action": "FailJobSet", "onJobFailureMessagePatterns": ["a(?!b)"]}},
            (
                f"{RULE}.onJobFailureMessagePatterns[0]: must be an RE2 regular expression; RE2 says: invalid perl "
                "operator: (?! (got 'a(?!b)'). see the RE2 syntax; matching takes linear time, so there "
                "is no lookaround and no backreference [message-pattern]"
            ),
        ),
        (
            {ENTRIES: [entry("driver", "workers")], "spec.scheduling.disruptionMode.all": {}},
            (
                "spec.scheduling: cannot set schedulingPolicy, schedulingConstraints, or disruptionMode together with "
                "replicatedJobs. move them into the entries of spec.scheduling.replicatedJobs, "
                "or remove replicatedJobs [scheduling-two-models]"
            ),
        ),
        (
            {"spec.scheduling.schedulingPolicy": {}},
            "spec.scheduling.schedulingPolicy: must specify one of: `basic`, `gang`. set basic or gang [union-member]",
        ),
    ],
)
def test_what_a_person_reads(edits: dict[str, object], problem: str) -> None:
    assert [str(p) for p in problems_of_create(edits, ALL_GATES)] == [problem]


@pytest.mark.decision(14)
def test_a_change_is_named_field_by_field() -> None:
    """Rejections do not print whole structs (decision 14); the message is the one of the CRD's rule."""
    stored = edited(JOBSET, {"spec.scheduling": {"schedulingPolicy": {"gang": {}}, "disruptionMode": {"all": {}}}})
    changed = edited(
        stored, {"spec.scheduling.schedulingPolicy": {"basic": {}}, "spec.scheduling.disruptionMode": ABSENT}
    )
    (problem,) = validate_update(parse(stored), parse(changed), ALL_GATES)
    assert (problem.path, problem.message, problem.value) == ("spec.scheduling", "Value is immutable", None)
    assert problem.hint == (
        "spec.scheduling.schedulingPolicy.gang was an object, now unset; "
        "spec.scheduling.schedulingPolicy.basic was unset, now an object; "
        "spec.scheduling.disruptionMode.all was an object, now unset. "
        "To change it, delete the JobSet and create it anew"
    )


def test_a_stored_breach_does_not_stand_in_the_way() -> None:
    """A JobSet that was stored before a rule existed can still be suspended, and be deleted by removing finalizers."""
    stored = parse(edited(JOBSET, {"metadata.labels": {"a b": "c"}, "spec.scheduling": {}}))
    suspended = parse(edited(JOBSET, {"metadata.labels": {"a b": "c"}, "spec.scheduling": {}, "spec.suspend": True}))
    assert validate_update(stored, suspended, gates.DEFAULTS) == ()
    relabelled = parse(edited(JOBSET, {"metadata.labels": {"a b": "c", "d e": "f"}, "spec.scheduling": {}}))
    assert seen(validate_update(stored, relabelled, gates.DEFAULTS)) == [("label-key", "metadata.labels[d e]")]


def test_hostile_sizes_are_refused_at_once() -> None:
    """An alias of YAML repeats what it names for the price of a few letters, and may contain itself."""
    bomb: list[object] = ["x"]
    for _ in range(60):
        bomb = [bomb, bomb]
    circle: dict[str, object] = {}
    circle["again"] = [circle, circle]
    for value, code in (
        (bomb, "too-large"),
        (circle, "too-deep"),
        (10**5000, "number-range"),
        ("\ud800", "wrong-type"),
    ):
        problems = problems_of_create({f"{DRIVER}.template.spec.template.spec.affinity": value}, ALL_GATES)
        assert code in {problem.code for problem in problems}
        assert all(str(problem).isprintable() for problem in problems)


def test_a_message_is_cut_where_it_repeats_what_it_was_given() -> None:
    rules = [{"action": "FailJobSet", "onJobFailureMessagePatterns": ["(" * 100_000]}]
    for edits in ({"metadata.name": "n" * 100_000}, {"spec.failurePolicy.rules": rules}):
        problems = problems_of_create(edits, ALL_GATES)
        assert problems
        assert all(len(str(problem)) < 1500 for problem in problems)


def test_patterns_are_counted_over_all_rules_and_not_compiled_where_there_are_too_many() -> None:
    def problems_of(*counts: int) -> list[tuple[str, str]]:
        rules = [
            {"action": "FailJobSet", "name": f"r{index}", "onJobFailureMessagePatterns": ["("] * count}
            for index, count in enumerate(counts)
        ]
        return seen(problems_of_create({"spec.failurePolicy.rules": rules}, ALL_GATES))

    assert problems_of(256, 0)[:1] == [("message-pattern", f"{RULE}.onJobFailureMessagePatterns[0]")]
    assert problems_of(257, 0) == [("too-many-items", f"{RULE}.onJobFailureMessagePatterns")]
    assert problems_of(1, 256, 0) == [
        ("message-pattern", f"{RULE}.onJobFailureMessagePatterns[0]"),
        ("too-many-items", "spec.failurePolicy.rules[1].onJobFailureMessagePatterns"),
    ]


def test_a_message_cannot_steer_a_terminal() -> None:
    edits = {"spec.\x1b[2J": 1, "metadata.labels": {"\x1b]0;": "\x1b[31m"}, f"{DRIVER}.name": "\x1b[31m"}
    problems = problems_of_create(edits, ALL_GATES)
    assert len(problems) == 4
    assert all(str(problem).isprintable() for problem in problems)


def test_something_else_than_a_jobset_is_not_looked_into() -> None:
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}, "spec": {"replicas": "x"}}
    with pytest.raises(InvalidSpec) as invalid:
        parse(deployment)
    assert seen(invalid.value.problems) == [("wrong-kind", "kind"), ("wrong-api-version", "apiVersion")]
