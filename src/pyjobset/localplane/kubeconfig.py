"""Kubeconfigs of a plane: one for the administrator, one for each component that talks to the API server. Pure.

Certificates are inside, so that a copy of the file works elsewhere on the machine.
"""

import base64
from collections.abc import Mapping

NAME = "jobset-plane"


def kubeconfig(server: str, authority: bytes, certificate: bytes, key: bytes) -> Mapping[str, object]:
    """A kubeconfig with one cluster, one user and one context."""
    cluster = {"server": server, "certificate-authority-data": _text(authority)}
    user = {"client-certificate-data": _text(certificate), "client-key-data": _text(key)}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": NAME,
        "clusters": [{"name": NAME, "cluster": cluster}],
        "users": [{"name": NAME, "user": user}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME, "namespace": "default"}}],
    }


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
