"""docs/metrics.md from the table of metrics. scripts/generate.py calls it."""

from collections.abc import Iterator

from pyjobset.controller.metrics import BOUNDS_SECONDS, FAMILIES, GONE_SECONDS
from pyjobset.controller.metrics_access import ALLOWED_SECONDS, DENIED_SECONDS

INTRODUCTION = f"""\
# Metrics

<!-- Generated from src/pyjobset/controller/metrics.py by `make generate`. -->

The controller serves `/metrics` at `--metrics-bind-address` (`:8443`; `0` switches it off), in Prometheus' text format
or in OpenMetrics, whichever is asked for.

- It speaks HTTPS, TLS 1.2 at least, with the `tls.crt` and `tls.key` of `metrics.certDir`, else with a certificate that
  it signs itself, and makes at the first connection, which takes 11 MB of memory. Changed files are used from the next
  connection on.
- A request needs a bearer token. The API server is asked whose it is (`tokenreviews`) and whether that user may `get`
  the nonResourceURL `/metrics` (`subjectaccessreviews`); a yes holds for {ALLOWED_SECONDS:g} s, a no
  for {DENIED_SECONDS:g} s. The answer is 401 without a token that the API server accepts, 403 without the right to
  read, and 503 when the API server does not say. The controller itself needs the right to `create` those two kinds of
  reviews; the ClusterRole `system:auth-delegator` has it.
- `--metrics-secure=false` serves plain HTTP to everybody on this machine, on a loopback address only. The local plane
  does so: `jobset status` shows the address.
- [deploy/monitoring](../deploy/monitoring) has a Service, a ServiceMonitor, alerts, a Grafana dashboard and the
  ClusterRole of a reader.

A JobSet's end is counted after the write that stored it, so never twice, and not at all if the controller is killed
between the two. Counters begin anew with each process. The series of a deleted JobSet can be read for
{GONE_SECONDS / 60:g} minutes more. A series that begins at 1 is no increase to Prometheus: for rates and alerts use
`pyjobset_jobset_ends_total`, which begins at 0.
"""


def generate() -> dict[str, str]:
    return {"docs/metrics.md": "\n".join([INTRODUCTION, *_table(), "", *_histograms(), ""])}


def _table() -> Iterator[str]:
    yield "| metric | kind | labels | what |"
    yield "|---|---|---|---|"
    for family in FAMILIES:
        labels = ", ".join(f"`{label}`" for label in family.labels)
        yield f"| `{family.name}` | {family.kind} | {labels} | {family.help.replace('<', '&lt;')} |"


def _histograms() -> Iterator[str]:
    yield f"Histograms have the bounds {', '.join(f'{bound:g}' for bound in BOUNDS_SECONDS)} seconds."
    yield ""
    yield "Of the process itself there are the usual `process_cpu_seconds_total`, `process_resident_memory_bytes`,"
    yield "`process_virtual_memory_bytes`, `process_start_time_seconds`, `process_open_fds` and `process_max_fds`."
