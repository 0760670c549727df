"""Ends a server whose supervisor has gone, however it went; run as a script of its own.

python guard.py: reads `watch GROUP GRACE` on standard input and waits for the input to end. If `done` came before, it
leaves; else the supervisor has died, and the process group gets SIGTERM, and SIGKILL after GRACE seconds. Otherwise the
engine would live on and hold the GPU's memory, and the next start would fail for want of it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time

_POLL_S = 0.1


def end_group(group: int, grace_s: float) -> None:
    """SIGTERM to the leader of a process group, SIGKILL to all that is left of it after `grace_s`."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(group, signal.SIGTERM)
    deadline = time.monotonic() + grace_s
    with contextlib.suppress(ProcessLookupError):
        while time.monotonic() < deadline:
            os.killpg(group, 0)
            time.sleep(_POLL_S)
        os.killpg(group, signal.SIGKILL)


def main() -> None:
    """Waits for the end of standard input."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    group, grace_s = 0, 0.0
    for line in sys.stdin:
        words = line.split()
        if words[:1] == ["watch"]:
            group, grace_s = int(words[1]), float(words[2])
        elif words[:1] == ["done"]:
            group = 0
    if group:
        end_group(group, grace_s)


if __name__ == "__main__":
    main()
