"""Fits on three hosts, and takes one down in the middle of a round.

``python -m tests.robustness.hosts`` (as root, on Linux: it needs the program ``ip``)

Hosts are network namespaces: one has the scheduler, the client and a bridge, the others a worker
each. A host is down when its link is: nothing says goodbye. Prints what `cluster` prints, with
Dask's own settings and with a shorter time-out of its connections.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from distributed import Client

from tests.robustness.cluster import Run, nothing, once, report

FIRST, WORKERS = "loclin-0", ("loclin-1", "loclin-2")
ADDRESS = "10.77.0.{}"
SHORT = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "11s"}


def ip(*words: str, host: str | None = None) -> None:
    """Run ``ip``, on a host."""
    of_host = ("-n", host) if host else ()
    subprocess.run(["ip", *of_host, *words], check=True)


@contextmanager
def three_hosts() -> Iterator[None]:
    """Make them, and take them away."""
    with ExitStack() as stack:
        for host in (FIRST, *WORKERS):
            ip("netns", "add", host)
            stack.callback(ip, "netns", "del", host)
            ip("link", "set", "lo", "up", host=host)
        ip("link", "add", "bridge", "type", "bridge", host=FIRST)
        ip("addr", "add", ADDRESS.format(1) + "/24", "dev", "bridge", host=FIRST)
        ip("link", "set", "bridge", "up", host=FIRST)
        for number, host in enumerate(WORKERS, 2):
            near = ("type", "veth", "peer", "name", "out", "netns", host)
            ip("link", "add", host, *near, host=FIRST)
            ip("link", "set", host, "master", "bridge", "up", host=FIRST)
            ip("addr", "add", ADDRESS.format(number) + "/24", "dev", "out", host=host)
            ip("link", "set", "out", "up", host=host)
        yield


@contextmanager
def cluster_of_hosts() -> Iterator[Client]:
    """Yield a client on the first host; a scheduler is there, and workers on the others."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:

        def start(host: str, *words: str) -> None:
            words = "ip", "netns", "exec", host, sys.executable, "-m", "dask", *words
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            process = stack.enter_context(
                subprocess.Popen([*words, "--no-dashboard"], cwd=os.getcwd(), **quiet)
            )
            stack.callback(process.kill)

        address = f"tcp://{ADDRESS.format(1)}:8786"
        start(FIRST, "scheduler", "--host", ADDRESS.format(1), "--port", "8786")
        for host in WORKERS:
            start(host, "worker", address, "--no-nanny", "--nthreads", "1",
                  "--local-directory", str(Path(folder) / host))  # fmt: skip
        client = stack.enter_context(Client(address, timeout="60s"))
        client.wait_for_workers(2, timeout=60)
        yield client


def take_down(run: Run) -> None:
    """Take one host down."""
    ip("link", "set", WORKERS[0], "down")


def main() -> None:
    """Print what becomes of fits on three hosts."""
    if os.environ.get("LOCLIN_HOST") == FIRST:
        for name, fault in (("nothing", nothing), ("a host is taken down", once(take_down))):
            report(name, cluster_of_hosts, Run, fault)
        return
    for settings in ({}, SHORT):
        print(settings or "Dask's own settings", flush=True)
        with three_hosts():
            words = ["ip", "netns", "exec", FIRST, sys.executable, "-m", "tests.robustness.hosts"]
            environment = os.environ | settings | {"LOCLIN_HOST": FIRST}
            subprocess.run(words, check=True, env=environment)


if __name__ == "__main__":
    main()
