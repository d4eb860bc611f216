"""The agent as a program: from flags and environment to an exit code. Called by agent.main.

Exit codes: the worker's own; the restart code when the pod has to restart in place; 128 + the signal that ended it;
2 for wrong flags or variables. In a pod it talks to the cluster of that pod, whatever kubeconfig the image has.
"""

import asyncio
import logging
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack

from pyjobset import __version__
from pyjobset.agent.agent import Agent
from pyjobset.agent.probe import Probe
from pyjobset.agent.settings import Settings, settings
from pyjobset.agent.worker import Worker
from pyjobset.errors import UsageError
from pyjobset.kube.client import Client, connect
from pyjobset.kube.cluster import SERVICE_ACCOUNT, in_cluster
from pyjobset.kube.transport import HttpTransport

SIGNALS = (signal.SIGTERM, signal.SIGINT)
FLAGS = ("--kubeconfig", "--namespace")
HELP = """Usage: jobset-in-place-restart-agent [--kubeconfig FILE] [--namespace NAME]

Runs in every pod of a JobSet with restartStrategy InPlaceRestart; docs/in-place-restart.md says how to set it up.
The flags are for use outside of a cluster.
"""


def main(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """The exit code."""
    if arguments and arguments[0] in ("--help", "-h", "--version"):
        sys.stdout.write(f"{__version__}\n" if arguments[0] == "--version" else HELP)
        return 0
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.INFO)
    try:
        flags = _flags(arguments)
        return asyncio.run(_run(settings(environment), flags.get("--kubeconfig"), flags.get("--namespace")))
    except UsageError as error:
        for line in error.message.splitlines():
            sys.stderr.write(f"jobset-in-place-restart-agent: {line}\n")
        return error.exit_code


def _flags(arguments: Sequence[str]) -> dict[str, str]:
    """`--name value` and `--name=value`. argparse would be a tenth of the program's start."""
    found: dict[str, str] = {}
    rest = iter(arguments)
    for argument in rest:
        name, equals, value = argument.partition("=")
        if name not in FLAGS:
            raise UsageError(f"{argument!r} is no flag of the agent: --help shows them")
        value = value if equals else next(rest, "")
        if not value:
            raise UsageError(f"{name} needs a value")
        found[name] = value
    return found


async def _run(chosen: Settings, kubeconfig: str | None, namespace: str | None) -> int:
    client = connect(kubeconfig=kubeconfig) if kubeconfig else _of_this_pod()
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(client)
        worker = Worker(chosen.shell, chosen.worker_command) if chosen.worker_command else None
        probe = Probe(chosen.probe_path, chosen.probe_port)
        if worker is None:
            await probe.start()
        barrier = worker or probe
        stack.callback(barrier.close)
        agent = Agent(
            client, namespace=namespace or client.namespace, jobset=chosen.jobset, pod=chosen.pod, barrier=barrier
        )
        return await _until_the_end(agent, worker, chosen.restart_exit_code)


async def _until_the_end(agent: Agent, worker: Worker | None, restart_exit_code: int) -> int:
    """The first of: a signal, the worker's end, a restart in place. A signal leaves the worker the time it needs."""
    loop = asyncio.get_running_loop()
    stopped: asyncio.Future[int] = loop.create_future()

    def stop(number: int) -> None:
        if worker is not None:
            worker.send(number)
        if not stopped.done():
            stopped.set_result(128 + number)

    for number in SIGNALS:
        loop.add_signal_handler(number, stop, number)
    restart = asyncio.create_task(agent.run())
    ends: set[asyncio.Future[int] | asyncio.Task[None]] = {stopped, restart}
    if worker is not None:
        ends.add(worker.exit_code)
    try:
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    finally:
        restart.cancel()
    if stopped.done():
        if worker is not None and worker.is_running:
            await worker.exit_code
        return stopped.result()
    if worker is not None and worker.exit_code.done():
        return worker.exit_code.result()
    await restart  # raises what ended it, if it was no restart
    return restart_exit_code


def _of_this_pod() -> Client:
    try:
        config = in_cluster()
    except UsageError as error:
        raise UsageError(f"{error.message}: outside of a pod, give --kubeconfig") from error
    if not (SERVICE_ACCOUNT / "namespace").is_file():
        raise UsageError(f"{SERVICE_ACCOUNT / 'namespace'} is not there: let the pod mount its service account's token")
    return Client(HttpTransport(config), namespace=config.namespace)
