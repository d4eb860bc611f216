"""Signals to a controller in a process of its own, which has no cluster: it waits for one."""

import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyjobset.localplane.ports import draw
from tests.server.plane import PATIENCE_SECONDS, wait_for

NOWHERE = """
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
"""
BLOCKED = """
import asyncio, time
from pyjobset.controller.signals import install

async def main():
    install(asyncio.Event())
    print("blocked", flush=True)
    while True:
        time.sleep(60)

asyncio.run(main())
"""


@pytest.fixture
def controller(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], int, Path]]:
    """The process, its health port and its log."""
    (tmp_path / "kubeconfig").write_text(NOWHERE)
    port, log = draw(set()), tmp_path / "log"
    flags = ["--metrics-bind-address=0", f"--health-probe-bind-address=127.0.0.1:{port}"]
    words = ["-m", "pyjobset.cli.main", "controller", "--kubeconfig", str(tmp_path / "kubeconfig"), *flags]
    with log.open("wb") as output:
        process = subprocess.Popen([sys.executable, *words], stderr=output)
    wait_for(lambda: "Waiting for the JobSet API" in log.read_text(), "the controller")
    yield process, port, log
    process.kill()
    process.wait(PATIENCE_SECONDS)


def test_its_log_level_is_changed_while_it_runs(controller: tuple[subprocess.Popen[bytes], int, Path]) -> None:
    process, _, log = controller
    process.send_signal(signal.SIGUSR1)
    wait_for(lambda: "level=debug" in log.read_text(), "debug")
    process.send_signal(signal.SIGUSR2)
    wait_for(lambda: "level=info" in log.read_text(), "info")
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_SECONDS) == 0


def test_without_a_cluster_it_is_alive_and_not_ready(controller: tuple[subprocess.Popen[bytes], int, Path]) -> None:
    process, port, _ = controller

    def ask(path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE_SECONDS) as answer:
                return answer.status, answer.read().decode().strip()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode().strip()

    assert ask("/healthz") == (200, "ok")
    assert ask("/readyz") == (503, "waiting for caches")
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_SECONDS) == 0


def test_a_second_signal_ends_a_process_whose_event_loop_is_blocked() -> None:
    process = subprocess.Popen([sys.executable, "-c", BLOCKED], stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout as output:
        assert output.readline() == b"blocked\n"

        def ends() -> bool:
            process.send_signal(signal.SIGTERM)  # again and again: two that come together are one
            return process.poll() == 1

        assert wait_for(ends, "its end")
