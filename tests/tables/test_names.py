"""Names: the literal name of each kind of object. Every hash below was computed with sha1sum, not with our code."""

import pytest

from pyjobset.objects import names
from tests.builders import jobset

A51, A52, A53, A63 = "a" * 51, "a" * 52, "a" * 53, "a" * 63
J40, J51, J52, J60 = "j" * 40, "j" * 51, "j" * 52, "j" * 60
X30, Y21, Y30 = "x" * 30, "y" * 21, "y" * 30
W50, W52, R52, R60 = "w" * 50, "w" * 52, "r" * 52, "r" * 60


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # hashed: cut so that it is exactly 63, wherever the cut falls
        (names.hashed("a", "0123456789"), "a-0123456789"),
        (names.hashed(A51, "0123456789"), f"{A51}-0123456789"),
        (names.hashed(A52, "0123456789"), f"{A52}-0123456789"),
        (names.hashed(A53, "0123456789"), f"{A52}-0123456789"),
        (names.hashed(A63, "0123456789"), f"{A52}-0123456789"),
        (names.hashed(f"{A51}-bcd", "0123456789"), f"{A51}--0123456789"),
        # the Workload, and the template and PodGroup of the whole JobSet
        (names.workload_name("default", "gang-training"), "gang-training-536cd048a7"),
        (names.workload_name("other", "gang-training"), "gang-training-cb4b826e69"),
        (names.workload_name("default", A52), f"{A52}-50d76b1936"),
        (names.workload_name("default", A53), f"{A52}-ef702e038c"),
        (names.workload_name("default", A63), f"{A52}-9b44467e5f"),
        (names.workload_name("default", f"{A51}-bcdefghijk"), f"{A51}--53085995f2"),
        # a template of one ReplicatedJob
        (names.replicated_job_template_name("default", "sequenced-gang", "leader"), "leader-5e726ba929"),
        (names.replicated_job_template_name("default", "sequenced-gang", "worker"), "worker-b41461dfcc"),
        (names.replicated_job_template_name("default", "js", R60), f"{R52}-78da4b002b"),
        # a template of an entry, also with a single target
        (names.group_template_name("default", "per-rj-independent", ("launcher",)), "launcher-96579e4a53"),
        (names.group_template_name("default", "per-rj-independent", ("worker",)), "worker-6cf5bd766e"),
        (names.group_template_name("default", "per-rj-grouped", ("launcher", "worker")), "launcher-worker-6dcbea6951"),
        (names.group_template_name("default", "js", (X30, Y30)), f"{X30}-{Y21}-a8c1bb4694"),
        # a template of one Job
        (names.job_template_name("default", "per-ij-job-independent", "worker", 0), "worker-0-b0a96b1491"),
        (names.job_template_name("default", "per-ij-job-independent", "worker", 1), "worker-1-88962d4b0e"),
        (names.job_template_name("default", "js", "w", 1000), "w-1000-7f8ddf5c98"),
        (names.job_template_name("default", "js", W50, 7), f"{W50}-7-0ad6914a95"),
        (names.job_template_name("default", "js", W52, 0), f"{W52}-6ad42bcba1"),
        # a PodGroup that does not hold the whole JobSet
        (names.pod_group_name("gang-training", "workers-6cf5bd766e"), "gang-training-workers-6cf5bd766e"),
        (names.pod_group_name("js", "t" * 60), "js-" + "t" * 60),
        (names.pod_group_name("js", "t" * 61), "js-238501c01a"),
        (names.pod_group_name(J40, "workers-6cf5bd766e-more"), f"{J40}-75bae595c1"),
        (names.pod_group_name(J60, "t-0123456789"), f"{J52}-c1c97f4ce7"),
        (names.pod_group_name(f"{J51}-jjjjj", "t-0123456789"), f"{J51}--44169620cc"),
        # a Job, its key, its pods, a claim
        (names.job_name("js", "w", 0), "js-w-0"),
        (names.job_name("js", "w", 1000), "js-w-1000"),
        (names.job_key("default", "js-w-0"), "4ff81fd931645b5111ec7c7532e38adf82a24c26"),
        (names.job_key("other", "js-w-0"), "c529881348adbd621b821b16b106ec940bb74dac"),
        (names.pod_hostname("js-w-0", 3), "js-w-0-3"),
        (names.claim_name("data", "js"), "data-js"),
        # what the network makes of a JobSet
        (names.subdomain(jobset()), "js"),
        (names.subdomain(jobset(network={})), "js"),
        (names.subdomain(jobset(network={"subdomain": ""})), "js"),
        (names.subdomain(jobset(network={"subdomain": "net"})), "net"),
        (names.coordinator_endpoint(jobset()), None),
        (names.coordinator_endpoint(jobset(coordinator={"replicatedJob": "w"})), "js-w-0-0.js"),
        (
            names.coordinator_endpoint(
                jobset(coordinator={"replicatedJob": "w", "jobIndex": 1, "podIndex": 2}, network={"subdomain": "net"})
            ),
            "js-w-1-2.net",
        ),
    ],
)
def test_name(name: str | None, expected: str | None) -> None:
    assert name == expected


@pytest.mark.parametrize(
    ("text", "rfc1123", "rfc1035", "subdomain"),
    [
        ("a", True, True, True),
        ("a-b--c", True, True, True),
        ("0a", True, False, True),
        (A63, True, True, True),
        (A63 + "a", False, False, True),
        ("a" * 253, False, False, True),
        ("a" * 254, False, False, False),
        ("a.b", False, False, True),
        ("a..b", False, False, False),
        (".a", False, False, False),
        ("a.-b", False, False, False),
        ("", False, False, False),
        ("-a", False, False, False),
        ("a-", False, False, False),
        ("A", False, False, False),
        ("a_b", False, False, False),
        ("a\n", False, False, False),
        ("ä", False, False, False),
        ("٣", False, False, False),
    ],
)
def test_dns(text: str, rfc1123: bool, rfc1035: bool, subdomain: bool) -> None:
    assert names.is_dns_label(text) is rfc1123
    assert names.is_rfc1035_label(text) is rfc1035
    assert names.is_dns_subdomain(text) is subdomain


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("app", True, True),
        ("App_1.x", True, True),
        (A63, True, True),
        (A63 + "a", False, False),
        ("", False, True),
        ("_app", False, False),
        ("app.", False, False),
        ("app\n", False, False),
        ("topology.kubernetes.io/rack", True, False),
        ("Upper.io/rack", False, False),
        ("a" * 253 + "/rack", True, False),
        ("a" * 254 + "/rack", False, False),
        ("/rack", False, False),
        ("example.com/", False, False),
        ("a/b/c", False, False),
        ("a b", False, False),
    ],
)
def test_labels(text: str, key: bool, value: bool) -> None:
    assert names.is_label_key(text) is key
    assert names.is_label_value(text) is value
