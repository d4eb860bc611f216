"""Free TCP ports on 127.0.0.1. `plane.py` keeps a plane's ports from one start to the next while nobody else has them.

Ports are drawn below the range that the kernel hands to outgoing connections, so that a stopped plane finds them free.
"""

import secrets
import socket
from collections.abc import Collection, Mapping, Sequence

from pyjobset.errors import PlaneError

LOWEST, HIGHEST = 16_384, 32_767


def is_free(port: int) -> bool:
    """Can a server listen on the port now?"""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            probe.listen(1)
        except OSError:
            return False
    return True


def draw(avoid: Collection[int]) -> int:
    """A free port that is not in `avoid`."""
    for _ in range(1000):
        port = LOWEST + secrets.randbelow(HIGHEST - LOWEST + 1)
        if port not in avoid and is_free(port):
            return port
    raise PlaneError(f"no free TCP port on 127.0.0.1 from {LOWEST} to {HIGHEST}", hint="end some servers and try again")


def assign(names: Sequence[str], known: Mapping[str, int], in_use_by_us: Collection[str]) -> dict[str, int]:
    """A port for every name: the known one while it is ours or free, else a new one."""
    ports: dict[str, int] = {}
    for name in names:
        port = known.get(name, 0)
        keep = bool(port) and port not in ports.values() and (name in in_use_by_us or is_free(port))
        ports[name] = port if keep else draw({*ports.values(), *known.values()})
    return ports
