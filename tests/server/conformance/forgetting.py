"""Makes the real API server forget, which it does by itself only after minutes: through the gateway of its etcd.

The server looks at what was compacted by a key of its own, and drops what it remembers of before.
"""

import base64
import json
import ssl
import urllib.request
from typing import Any

import msgspec

from pyjobset.localplane.plane import Plane

COMPACTED = base64.b64encode(b"compact_rev_key").decode()


def forget(plane: Plane) -> None:
    """Everything before now. It takes the API server some seconds to hear of it."""
    now = _etcd(plane, "range", key=COMPACTED)["header"]["revision"]
    _etcd(plane, "compaction", revision=now, physical=True)
    _etcd(plane, "put", key=COMPACTED, value=base64.b64encode(now.encode()).decode())


def _etcd(plane: Plane, verb: str, **body: Any) -> Any:
    pki = plane.directory / "pki"
    context = ssl.create_default_context(cafile=str(pki / "etcd-ca.crt"))
    context.load_cert_chain(pki / "apiserver-etcd-client.crt", pki / "apiserver-etcd-client.key")
    port = json.loads((plane.directory / "plane.json").read_text())["ports"]["etcd"]
    request = urllib.request.Request(f"https://127.0.0.1:{port}/v3/kv/{verb}", msgspec.json.encode(body))
    with urllib.request.urlopen(request, context=context, timeout=10) as response:
        return json.load(response)
