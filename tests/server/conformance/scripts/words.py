"""What the scripts say again and again."""

from typing import Any

from pyjobset.objects.meta import Manifest
from tests.server.conformance.player import Script, Step, Watch

HOLD = {"finalizers": ["example.com/hold"]}
RED, BLUE = {"metadata": {"labels": {"colour": "red"}}}, {"metadata": {"labels": {"colour": "blue"}}}
GANG_SIZE = {"spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}}
WORKLOAD_SIZE = [{"op": "replace", "path": "/spec/podGroupTemplates/0/schedulingPolicy/gang/minCount", "value": 3}]
NO_WATCH: tuple[Watch, ...] = ()


def steps(*each: Step, watch: str = "", lists: tuple[str, ...] = (), selector: str = "") -> Script:
    """All are played; `watch` is a kind that is watched from the beginning, and listed at the end."""
    watches = (Watch(watch, selector),) if watch else NO_WATCH
    return Script(each, watches, lists or ((watch,) if watch else ()))


def op(operation: str, path: str, value: Any = None) -> Manifest:
    return {"op": operation, "path": path} | ({} if operation == "remove" else {"value": value})


def condition(type_: str, status: str = "True", **more: Any) -> Manifest:
    return {"type": type_, "status": status, "reason": "R", "message": "m", **more}
