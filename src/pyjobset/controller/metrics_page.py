"""The page of metrics: reads what the parts of the controller counted, and makes text that Prometheus reads.

Made by metrics_server for the time that it serves. It changes nothing that it reads, but for series that are too old.
The library keeps no values here; it writes the formats (text or OpenMetrics) and reads what the kernel says of us.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from pyjobset import __version__
from pyjobset.controller import metrics as table
from pyjobset.controller.metrics import BOUNDS_SECONDS, Family, Histogram, Reviews
from pyjobset.controller.observe import Caches
from pyjobset.controller.queue import Queue
from pyjobset.controller.reconcile import Counters

CONTROLLER = "jobset"

Series = Mapping[tuple[str, ...], float | Histogram]
"""Values by the values of the labels."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Who counts. `answers` are those of the API server by method and status, 0 for none; `now` is in seconds."""

    counters: Counters
    queue: Queue
    caches: Caches
    reviews: Reviews
    answers: Mapping[tuple[str, int], int]
    host: str
    now: Callable[[], float]
    leads: Callable[[], Mapping[str, bool]] = dict
    """Whether this replica leads, by the Lease."""


class Page(Collector):
    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def render(self, accept: str) -> tuple[bytes, str]:
        """The page in the format that the Accept header asks for, and the Content-Type."""
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type

    def collect(self) -> Iterator[Metric]:
        for family, series in self._read():
            yield _metric(family, series)

    def _read(self) -> Iterator[tuple[Family, Series]]:
        of, counters, queue = self._sources, self._sources.counters, self._sources.queue
        counters.ends.forget_old(of.now())
        for family, counts in counters.ends.series.items():
            yield family, {(key.name, key.namespace): count for key, count in counts.items()}
        yield table.ENDS, {(result,): count for result, count in counters.ends.results.items()}
        yield (
            table.RECONCILES,
            {
                (CONTROLLER, "success"): sum(counters.seconds.counts) - counters.errors - counters.requeues,
                (CONTROLLER, "requeue_after"): counters.requeues,
                (CONTROLLER, "error"): counters.errors,
            },
        )
        yield table.RECONCILE_ERRORS, {(CONTROLLER,): counters.errors}
        yield table.RECONCILE_PANICS, {(CONTROLLER,): counters.bugs}
        yield table.RECONCILE_SECONDS, {(CONTROLLER,): counters.seconds}
        yield table.QUEUE_DEPTH, {(CONTROLLER,): queue.depth}
        yield table.QUEUE_ADDS, {(CONTROLLER,): queue.adds}
        yield table.QUEUE_SECONDS, {(CONTROLLER,): queue.waits}
        yield (
            table.REQUESTS,
            {(str(code or "<error>"), method, of.host): n for (method, code), n in of.answers.items()},
        )
        caches = {(cache.resource.plural,): cache for cache in of.caches.all()}
        yield table.WATCHES, {name: cache.watches for name, cache in caches.items()}
        yield table.CACHE_OBJECTS, {name: len(cache) for name, cache in caches.items()}
        yield table.CACHE_FOLLOWING, {name: float(cache.is_following) for name, cache in caches.items()}
        yield table.REVIEW_SECONDS, {(webhook,): seconds for webhook, seconds in of.reviews.seconds.items()}
        yield table.REVIEWS, {(path, verdict): count for (path, verdict), count in of.reviews.verdicts.items()}
        yield table.LEADER, {(name,): float(is_leading) for name, is_leading in of.leads().items()}
        yield table.BUILD, {(__version__,): 1}


def _metric(family: Family, series: Series) -> Metric:
    if family.kind == "histogram":
        histograms = HistogramMetricFamily(family.name, family.help, labels=family.labels)
        for values, value in series.items():
            assert isinstance(value, Histogram)
            histograms.add_metric(values, buckets=_buckets(value), sum_value=value.sum)
        return histograms
    kind = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
    numbers: CounterMetricFamily | GaugeMetricFamily = kind(family.name, family.help, labels=family.labels)
    for values, value in series.items():
        assert not isinstance(value, Histogram)
        numbers.add_metric(values, value)
    return numbers


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    """Each with all that is below it."""
    totals = accumulate(histogram.counts)
    return [(bound, float(total)) for bound, total in zip((*map(str, BOUNDS_SECONDS), "+Inf"), totals, strict=True)]
