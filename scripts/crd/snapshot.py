"""Refreshes deploy/crd/openapi/kubernetes.json from a running API server: `make generate-openapi`.

It takes the schemas that a JobSet carries (Job template, PersistentVolumeClaim, condition) with all that they refer
to, without descriptions, so that the file changes only when the API does. kubectl's current context is used;
KUBECTL names another kubectl.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PATH = Path(__file__).resolve().parents[2] / "deploy/crd/openapi/kubernetes.json"
DOCUMENTS = ("/openapi/v3/apis/batch/v1", "/openapi/v3/api/v1")
ROOTS = (
    "io.k8s.api.batch.v1.JobTemplateSpec",
    "io.k8s.api.core.v1.PersistentVolumeClaim",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Condition",
)
REF = "#/components/schemas/"

Schema = dict[str, Any]


def fetch(path: str) -> Any:
    kubectl = os.environ.get("KUBECTL", "kubectl")
    answer = subprocess.run([kubectl, "get", "--raw", path], check=False, stdout=subprocess.PIPE)
    if answer.returncode:
        sys.exit(answer.returncode)  # kubectl has said why
    return json.loads(answer.stdout)


def references(value: object) -> Iterator[str]:
    """The names of all schemas that `value` refers to."""
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"].removeprefix(REF)
        for part in value.values():
            yield from references(part)
    elif isinstance(value, list):
        for part in value:
            yield from references(part)


def without_descriptions(schema: Any) -> Any:
    """`schema` without its documentation. A property that is called description has a schema, not a text: it stays."""
    if isinstance(schema, dict):
        return {k: without_descriptions(v) for k, v in schema.items() if k != "description" or isinstance(v, dict)}
    if isinstance(schema, list):
        return [without_descriptions(part) for part in schema]
    return schema


def take(documents: list[Any]) -> Schema:
    """The stored form: the server's version, and the schemas by name."""
    offered: dict[str, Schema] = {}
    for document in documents:
        offered |= document["components"]["schemas"]
    wanted: dict[str, Schema] = {}
    waiting = list(ROOTS)
    while waiting:
        name = waiting.pop()
        if name not in wanted:
            wanted[name] = without_descriptions(offered[name])
            waiting += references(wanted[name])
    return {"kubernetes": documents[0]["info"]["version"], "schemas": wanted}


def main() -> None:
    content = take([fetch(path) for path in DOCUMENTS])
    PATH.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(f"wrote {PATH}: {len(content['schemas'])} schemas of Kubernetes {content['kubernetes']}")


if __name__ == "__main__":
    main()
