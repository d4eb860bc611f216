"""The example of volumeClaimPolicies: it passes the rules without a warning, and its claim outlives the JobSet."""

import pytest

from pyjobset.cli.files import read
from pyjobset.compiler.jobset import compile_jobset
from pyjobset.objects.features import DEFAULTS
from pyjobset.rules.validation import check, warnings
from tests.examples.conftest import EXAMPLES, Shell
from tests.server.plane import wait_for

FOLDER = EXAMPLES.parent / "volume-claim-policy"
CLAIM = "kubectl get pvc dataset-shared-volume -n default -o jsonpath='{.status.phase}/{.metadata.uid}'"
STATE = "kubectl get jobset shared-volume -n default -o jsonpath={.status.terminalState}"


def test_the_readme_names_every_example() -> None:
    readme = (FOLDER / "README.md").read_text()
    assert [path.name for path in FOLDER.glob("*.yaml") if f"`{path.name}`" not in readme] == []


def test_it_compiles_to_one_claim_that_all_jobs_mount() -> None:
    found, problems = read([str(FOLDER / "single-pvc.yaml")])
    assert not problems
    (jobset,) = (check(one.manifest, DEFAULTS) for one in found)
    assert warnings(jobset, DEFAULTS) == ()
    compiled = compile_jobset(jobset)
    (claim,) = compiled.claims
    assert "ownerReferences" not in claim["metadata"]
    mounted = [job["spec"]["template"]["spec"]["volumes"] for job in compiled.jobs]
    assert mounted == [[{"name": "dataset", "persistentVolumeClaim": {"claimName": claim["metadata"]["name"]}}]] * 3


@pytest.mark.server
def test_the_claim_outlives_the_jobset_and_serves_it_again(default: Shell) -> None:
    default.apply("../volume-claim-policy/volume")
    default.apply("../volume-claim-policy/single-pvc")
    wait_for(lambda: default.run(STATE) == "Completed", "the first run")
    default.look()
    claim = default.run(CLAIM)
    assert claim.startswith("Bound/")
    default.run("kubectl delete jobset shared-volume -n default --cascade=foreground")
    default.apply("../volume-claim-policy/single-pvc")
    wait_for(lambda: default.run(STATE) == "Completed", "the second run")
    assert default.run(CLAIM) == claim
    default.run("kubectl delete jobset shared-volume -n default --cascade=foreground")
    default.run("kubectl delete pvc dataset-shared-volume -n default")
