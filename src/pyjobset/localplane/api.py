"""A few requests to the components: are you ready, here are nodes and a CRD. Used by `plane.py` only.

Blocking and small on purpose: the plane needs no watch, and must ask etcd and the scheduler too. Our controller and
SDK use `pyjobset.kube`. TLS is always verified against the plane's own authorities.
"""

import http.client
import json
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from pyjobset.errors import PlaneError

TIMEOUT_SECONDS = 30.0


def tls(directory: Path, authority: str, identity: str) -> ssl.SSLContext:
    """A client that trusts one authority of the pki directory and shows one identity of it."""
    context = ssl.create_default_context(cafile=str(directory / f"{authority}.crt"))
    context.load_cert_chain(directory / f"{identity}.crt", directory / f"{identity}.key")
    return context


def healthy(port: int, path: str, context: ssl.SSLContext | None) -> bool:
    """Does the component at 127.0.0.1:port answer 200? Without a context the question goes over plain HTTP."""
    connection = _connection(port, context, timeout_seconds=2)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


class ApiServer:
    """The plane's API server, spoken to as its administrator. One kept connection; not for use by several threads."""

    def __init__(self, port: int, context: ssl.SSLContext, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self._connection = _connection(port, context, timeout_seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def get(self, path: str) -> dict[str, Any]:
        """The object or list at the path."""
        return self._call("GET", path, None, "")

    def create(self, path: str, manifest: Mapping[str, object]) -> bool:
        """Creates the object; False when there is one of that name."""
        return bool(self._call("POST", path, json.dumps(manifest).encode(), "application/json", allowed=(409,)))

    def apply(self, path: str, manifest: bytes) -> dict[str, Any]:
        """Server-side apply of a YAML or JSON manifest."""
        query = "?fieldManager=jobset-plane&force=true"
        return self._call("PATCH", path + query, manifest, "application/apply-patch+yaml")

    def delete(self, path: str) -> bool:
        """Deletes the object or the collection; False when there is none."""
        return bool(self._call("DELETE", path, None, "", allowed=(404,)))

    def _call(
        self, method: str, path: str, body: bytes | None, content_type: str, allowed: tuple[int, ...] = ()
    ) -> dict[str, Any]:
        headers = {"Accept": "application/json"} | ({"Content-Type": content_type} if body else {})
        try:
            self._connection.request(method, path, body, headers)
            response = self._connection.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise PlaneError(
                f"the API server of the local plane does not answer {method} {path}: {error}",
                hint="jobset status shows what runs; jobset up repairs it; jobset logs kube-apiserver says more",
            ) from error
        if response.status in allowed:
            return {}
        decoded: dict[str, Any] = json.loads(text) if text.startswith(b"{") else {}
        if response.status >= http.client.BAD_REQUEST:
            reason = decoded.get("message") or text[:300].decode(errors="replace")
            raise PlaneError(f"the API server refused {method} {path}: {response.status} {reason}")
        return decoded or {"kind": "Status"}


def _connection(port: int, context: ssl.SSLContext | None, timeout_seconds: float) -> http.client.HTTPConnection:
    if context is None:
        return http.client.HTTPConnection("127.0.0.1", port, timeout=timeout_seconds)
    return http.client.HTTPSConnection("127.0.0.1", port, timeout=timeout_seconds, context=context)
