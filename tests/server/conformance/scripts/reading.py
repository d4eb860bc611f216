"""Reads, lists with selectors, and watches."""

from collections.abc import Mapping

from tests.server.conformance.bodies import job, jobset, workload
from tests.server.conformance.player import Script, Watch, create, delete, get, list_, patch
from tests.server.conformance.scripts.words import BLUE, HOLD, RED, WORKLOAD_SIZE, steps

READING: Mapping[str, Script] = {
    "lists with a label selector": steps(
        create("workloads", workload("a", {"labels": {"colour": "red", "x": "1"}})),
        create("workloads", workload("b", {"labels": {"colour": "blue"}})),
        create("workloads", workload("c")),
        *(
            list_("workloads", label_selector=selector)
            for selector in (
                "",
                "colour",
                "colour=red",
                "colour==red",
                "colour=red,x=1",
                "colour=red,x=2",
                "x",
                "colour=green",
                "colour,x",
            )
        ),
        list_("jobs"),
    ),
    "lists with a field selector": steps(
        create("workloads", workload("a")),
        create("workloads", workload("b")),
        *(list_("workloads", field_selector=f"metadata.name={name}") for name in ("a", "c")),
        list_("jobs", field_selector="metadata.name=a"),
        list_("jobsets", field_selector="metadata.name=a"),
    ),
    "a watch with a selector, as labels change": steps(
        create("workloads", workload()),
        patch("workloads", "a", RED),
        patch("workloads", "a", {"metadata": {"annotations": {"n": "1"}}}),
        patch("workloads", "a", BLUE),
        patch("workloads", "a", WORKLOAD_SIZE),
        patch("workloads", "a", RED),
        delete("workloads", "a"),
        create("workloads", workload("b", {"labels": {"colour": "blue"}})),
        delete("workloads", "b"),
        watch="workloads",
        selector="colour=red",
    ),
    "a watch with a selector of a key": steps(
        create("jobs", job()),
        patch("jobs", "a", RED),
        patch("jobs", "a", BLUE),
        patch("jobs", "a", {"metadata": {"labels": {"colour": None}}}),
        delete("jobs", "a"),
        watch="jobs",
        selector="colour",
    ),
    "a watch from a version tells what came after it": Script(
        (
            create("jobs", job()),
            create("jobs", job("b")),
            patch("jobs", "a", RED),
            delete("jobs", "b"),
            patch("jobs", "a", BLUE),
        ),
        (Watch("jobs", first=2), Watch("jobs", first=3, selector="colour=red")),
        ("jobs",),
    ),
    "a watch from a version that is forgotten ends at once": Script(
        (create("jobsets", jobset()), get("jobsets", "a")), (Watch("jobsets", first=1, version="1"),)
    ),
    "a streaming list tells what there is, a bookmark, then what comes": Script(
        (
            create("jobs", job()),
            create("jobs", job("b", {"labels": {"colour": "red"}})),
            create("jobs", job("c")),
            delete("jobs", "c"),
            patch("jobs", "a", RED),
            delete("jobs", "a"),
        ),
        (
            Watch("jobs", first=4, is_streaming_list=True),
            Watch("jobs", first=4, selector="colour=red", is_streaming_list=True),
        ),
        ("jobs",),
    ),
    "a streaming list of nothing": Script(
        (get("jobs", "a"),),
        (
            Watch("jobs", is_streaming_list=True),
            Watch("jobsets", is_streaming_list=True),
            Watch("podgroups", is_streaming_list=True),
        ),
    ),
    "what a watch tells of a deletion": steps(
        create("jobsets", jobset()),
        delete("jobsets", "a"),
        create("jobsets", jobset(metadata=HOLD)),
        delete("jobsets", "a"),
        patch("jobsets", "a", {"metadata": {"finalizers": None}}),
        watch="jobsets",
    ),
}
