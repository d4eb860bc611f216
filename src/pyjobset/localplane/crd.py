"""The JobSet CRD that this installation brings: in the package once it is installed, else in the checkout."""

import importlib.resources
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FILE = "jobset.x-k8s.io_jobsets.yaml"
NAME = "jobsets.jobset.x-k8s.io"


def definition() -> tuple[str, bytes] | None:
    """Name and manifest, or None when the file is nowhere."""
    installed = importlib.resources.files("pyjobset") / "crd" / FILE
    if installed.is_file():
        return NAME, installed.read_bytes()
    checkout = Path(__file__).parents[3] / "deploy" / "crd" / FILE
    return (NAME, checkout.read_bytes()) if checkout.is_file() else None


def established(definition: Mapping[str, Any]) -> bool:
    """Does the API server serve the resource?"""
    conditions = definition.get("status", {}).get("conditions") or []
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)
