"""docs/configuration.md and the example Configuration, from its structs. scripts/generate.py calls it."""

from collections.abc import Iterator
from typing import Any

import yaml

from pyjobset.controller.configuration import Configuration, fields, manifest
from pyjobset.controller.tls import ALWAYS_ON, INSECURE, SUITES
from pyjobset.objects.features import GATES

SOURCE = "src/pyjobset/controller/configuration.py"
INTRODUCTION = f"""\
# Configuration

<!-- Generated from {SOURCE} by `make generate`. -->

`jobset controller` is configured by flags, by a file, or by both: a flag that is given goes before the file, and the
file before the default.

    jobset controller --config controller_manager_config.yaml --kube-api-qps 100
    jobset controller --config controller_manager_config.yaml --print-config

The second prints the Configuration that results, and does not run.
[The example](../deploy/manager/controller_manager_config.yaml) has every field with its default; all are optional but
`apiVersion` and `kind`.

The file is read strictly: a key that is unknown or given twice, a value of another type or out of its range, a second
document. Everything that is wrong is told at once, with its path and what to do, and the controller does not start.

    error: Configuration config.yaml is invalid: 2 problems
      webhook.certdir         is not a field of the API [unknown-field]
                              hint: did you mean certDir?
      clientConnection.qps    must be a number above 0 (got 0.0) [configuration-value]
                              hint: the default is 500

## Fields

| field | default | flag | what it is |
|---|---|---|---|
"""
REST = """
- Durations are Go's: `15s`, `1m30s`, `500ms`. leaseDuration must be above renewDeadline, and that above
  1.2 x retryPeriod.
- Where the certificate of the webhooks comes from, and where there are no webhooks:
  [certificates](certificates.md#three-ways). `--webhook-bind-address 0` switches them off.
- `leaderElection`: see [high availability](high-availability.md).
- `--feature-gates` goes before `featureGates` gate by gate. Gates: {gates}.
- HTTP/2 is off.

### TLS

`tls` is for the webhooks and the metrics. Cipher suites are those of TLS 1.2, by their names in Go, and cannot be
chosen with VersionTLS13. The suites of TLS 1.3 ({always_on}) are always on;
where only they are listed, TLS 1.2 is not served. What Go calls insecure ({insecure}, …) is refused. Known are:

{suites}

### admission.dryRunJobTemplates

When a JobSet is created, or its templates change, the webhook sends each distinct Job template to the API server as a
dry run: see [admission](admission.md#the-job-templates-are-tried).

### suspendedJobs

`Create`, the default, is what the original controller does: a suspended JobSet has its Jobs, suspended, its Service
and its claims. Kueue and other queueing controllers rely on it. With `Defer` a JobSet that is suspended from the start
has none of them before its first resume. One that is suspended later keeps what it has.

## Flags without a field

| flag | default | what it is |
|---|---|---|
| `--config` | | the file |
| `--print-config` | | print the Configuration and end |
| `--kubeconfig`, `--context` | | the API server; without them `$KUBECONFIG`, `~/.kube/config`, the cluster it runs in |
| `--namespace` | all | reconcile one namespace only |
| `--concurrent-reconciles` | 16 | JobSets reconciled at the same time |
| `--metrics-secure` | true | false: metrics over plain HTTP, on a loopback address only |
| `--zap-log-level` | info | debug, info, warning, error, or a number: above 0 is debug |
| `--v` | 0 | as klog's: from 4 on debug; `--zap-log-level` goes before it |
| `--zap-encoder`, `--log-format` | text | console (text) or json |
| `--zap-devel` | | text from debug on; `--zap-devel=false` is JSON from info on; the other flags go before it |
| `--zap-stacktrace-level` | error | stack traces are those of bugs; `panic` leaves them out |
| `--zap-time-encoding` | iso8601 | iso8601, rfc3339, rfc3339nano, epoch, millis, nano |

A switch may be written as in Go: `--leader-elect=false` is `--no-leader-elect`.
"""


def generate() -> dict[str, str]:
    rest = REST.format(
        gates=", ".join(f"`{gate}`" for gate in GATES),
        always_on=", ".join(f"`{name}`" for name in ALWAYS_ON),
        insecure=f"`{INSECURE[0]}`",
        suites="\n".join(f"- `{name}`" for name in SUITES),
    )
    return {
        "docs/configuration.md": INTRODUCTION + "\n".join(_rows()) + "\n" + rest,
        "deploy/manager/controller_manager_config.yaml": "\n".join(_example()),
    }


def _rows() -> Iterator[str]:
    for path, meta, attributes in fields():
        if path in ("apiVersion", "kind"):
            continue
        flag = (meta.extra or {}).get("flag", "")
        yield f"| `{path}` | {_default(attributes)} | {f'`{flag}`' if flag else ''} | {meta.description} |"


def _default(attributes: tuple[str, ...]) -> str:
    value: Any = Configuration()
    for attribute in attributes:
        value = getattr(value, attribute)
    if value in ("", (), {}):
        return ""
    if value is None:
        return "`null`"
    return f"`{str(value).lower() if isinstance(value, bool) else f'{value:g}' if isinstance(value, float) else value}`"


def _example() -> Iterator[str]:
    yield "# Every field of the controller's Configuration with its default: docs/configuration.md says what they are."
    yield f"# Generated from {SOURCE} by `make generate`."
    yield yaml.safe_dump(manifest(Configuration()), sort_keys=False)
