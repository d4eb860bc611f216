"""The examples of failure policies, and docs/failure-policies.md: what is said there of rules and messages is so."""

import re
from pathlib import Path

import pytest
import yaml

from pyjobset.cli.files import read
from pyjobset.cli.main import main
from pyjobset.localplane.plane import Plane
from pyjobset.objects import features as gates
from pyjobset.objects.jobset import FailurePolicyRule, JobSet
from pyjobset.rules.failure_rules import DEFAULT_RULE, deciding
from pyjobset.rules.validation import check, warnings
from tests.examples.conftest import Shell
from tests.server.plane import wait_for
from tests.server.test_controller import Cluster

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "failure-policy"
DOCS = (ROOT / "docs" / "failure-policies.md").read_text()
FEATURES = gates.resolve({gates.RESTART_JOB: True})
EXIT, DISRUPTED, BACKOFF = (
    line.strip() for line in DOCS.splitlines() if line.startswith(("    Cont", "    Pod ", "    Job "))
)


def jobset(name: str) -> JobSet:
    found, problems = read([str(EXAMPLES / f"{name}.yaml")])
    assert not problems
    return check(found[0].manifest, FEATURES)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_nothing_is_wrong_with_it(path: Path) -> None:
    assert warnings(jobset(path.stem), FEATURES) == ()
    assert f"examples/failure-policy/{path.name}" in DOCS


@pytest.mark.parametrize(
    ("reason", "message", "rule"),
    [
        ("PodFailurePolicy", EXIT, "configuration"),
        ("PodFailurePolicy", EXIT.replace("code 2 ", "code 27 "), ""),
        ("PodFailurePolicy", DISRUPTED, "maintenance"),
        ("BackoffLimitExceeded", BACKOFF, ""),
    ],
)
def test_which_rule_of_the_example_decides(reason: str, message: str, rule: str) -> None:
    policy = jobset("rules").spec.failure_policy
    assert policy is not None
    assert deciding(policy.rules, "workers", reason, message).name == rule


@pytest.mark.parametrize(
    ("pattern", "message", "is_found"),
    [
        ("exit code 2", EXIT.replace("code 2 ", "code 27 "), True),
        ("exit code 2 ", EXIT.replace("code 2 ", "code 27 "), False),
        (r"exit code 2\b", EXIT.replace("code 2 ", "code 27 "), False),
        (r"exit code 2\b", EXIT, True),
        ("^Container .* index 0$", EXIT, True),
        ("EXIT CODE", EXIT, False),
        ("(?i)EXIT CODE", EXIT, True),
    ],
)
def test_what_is_said_of_patterns(pattern: str, message: str, is_found: bool) -> None:
    rule = FailurePolicyRule(name="r", action="FailJobSet", on_job_failure_message_patterns=(pattern,))
    assert (deciding([rule], "w", "PodFailurePolicy", message) is not DEFAULT_RULE) is is_found


def test_the_policy_of_the_docs_is_one() -> None:
    blocks = re.findall(r"(?:^    .*\n)+", DOCS, re.MULTILINE)
    policy = yaml.safe_load(next(block for block in blocks if "failurePolicy:" in block))
    template = yaml.safe_load(next(block for block in blocks if "Ignore" in block))
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    spec = {"parallelism": 8, "completions": 8, **template, "template": {"spec": pod}}
    manifest = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "x"},
        "spec": {"scheduling": {}, "replicatedJobs": [{"name": "workers", "template": {"spec": spec}}]},
    }
    gang = FEATURES | {gates.WORKLOAD_AWARE_SCHEDULING}
    assert warnings(check(manifest, gang), gang) == ()
    manifest["spec"] |= policy  # type: ignore[operator]
    assert warnings(check(manifest, gang), gang) == ()


@pytest.mark.server
def test_what_people_see_of_the_rules(default: Shell, plane: Plane, capsys: pytest.CaptureFixture[str]) -> None:
    """The end of it, word for word as the docs have it."""
    path = str(EXAMPLES / "rules.yaml")
    default.applied.append(path)
    default.run(f"kubectl apply -f {path}")
    cluster = ("-n", "default", "--kubeconfig", str(plane.kubeconfig))

    def state() -> str:
        return default.run("kubectl get jobset rules -n default -o jsonpath={.status.terminalState}")

    wait_for(lambda: state() == "Failed", "the restarts are used up")
    capsys.readouterr()
    assert main(["explain", "rules", *cluster]) == 0
    said = capsys.readouterr().out.replace("rules-workers-1", "rules-workers-0")  # whichever fails first
    told = DOCS.partition("and what comes next:\n\n")[2].partition("\n\n| where")[0]
    for line in filter(None, (line[4:] for line in told.splitlines())):
        assert line.split("; 1 more failed Job")[0] in said
    assert "so far 2 restarts (2 of max 2), 0 left [restarted]" in said
    assert main(["tree", "rules", *cluster]) == 0
    assert "2 restarts (2 of max 2); Failed: " in capsys.readouterr().out
    default.look()


@pytest.mark.server
def test_what_people_see_of_a_single_job(default: Shell, plane: Plane, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(EXAMPLES / "restart-job.yaml")
    default.applied.append(path)
    # It fails when it is told to, so that each restart lasts until it was seen.
    lasting = Path(path).read_text().replace("sleep 3; exit 1", "sleep infinity")
    applied = plane.run_kubectl("apply", "-f", "-", stdin=lasting)
    assert applied.returncode == 0, applied.stderr
    Cluster(plane.run_kubectl, "default").fail("restart-job-flaky-0")
    cluster = ("-n", "default", "--kubeconfig", str(plane.kubeconfig))

    def shown(command: str) -> str:
        assert main([command, "restart-job", *cluster]) == 0
        return capsys.readouterr().out

    def has_restarted() -> bool:
        text = shown("tree")
        assert re.search(r"Job restart-job-flaky-0 +Running +.*restarted alone once", text), text
        assert not re.search(r"Job restart-job-steady-\d.*(alone|attempt)", text), text
        return True

    wait_for(has_restarted, "flaky is created again")
    said = shown("explain")
    assert "rule alone (rules[0]) matches Job restart-job-flaky-0 (RestartJob): restart 1 of 2; that Job alone" in said
    assert "so far 1 restart of a single Job (1 of max 2), 1 left [restarted]" in said
    default.look()
