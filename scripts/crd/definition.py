"""The CustomResourceDefinition of JobSet, and the files that it is stored in. scripts/generate.py calls `files`."""

import inspect

import yaml

from crd import structs
from crd.snapshot import Schema
from pyjobset.objects.jobset import GROUP, KIND, VERSION, JobSet

PLURAL = "jobsets"
PATH = f"deploy/crd/{GROUP}_{PLURAL}.yaml"
HEADER = "# Made by `make generate` from src/pyjobset/objects/jobset.py and deploy/crd/openapi. Do not edit.\n"

COLUMNS = [
    {"name": "TerminalState", "type": "string", "jsonPath": ".status.terminalState"},
    {"name": "Restarts", "type": "string", "jsonPath": ".status.restarts"},
    {"name": "Completed", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Completed")].status'},
    {"name": "Suspended", "type": "string", "jsonPath": ".spec.suspend"},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]


def definition() -> Schema:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {"kind": KIND, "listKind": f"{KIND}List", "plural": PLURAL, "singular": KIND.lower()},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": COLUMNS,
                    "schema": {"openAPIV3Schema": {"description": inspect.getdoc(JobSet)} | structs.of(JobSet)},
                }
            ],
        },
    }


class _Dumper(yaml.CSafeDumper):
    """Writes equal parts out each time: anchors are no part of Kubernetes' YAML."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 (PyYAML's name)
        return True


def files() -> dict[str, str]:
    return {PATH: HEADER + yaml.dump(definition(), Dumper=_Dumper, sort_keys=False, width=120)}
