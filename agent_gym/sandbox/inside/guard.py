"""Process 1 of a sandbox of its own, for one run: unpacks the workspace, runs the program, kills everything, sends the workspace back."""

from __future__ import annotations

import os
import sys

from agent_gym.sandbox.inside.files import unpack_files
from agent_gym.sandbox.inside.running import Job, ignore_signals, run


def main() -> None:
    """Does one job and exits."""
    channel = int(sys.argv[1])
    job = Job(channel)
    ignore_signals()
    unpack_files(job.files)
    run(job, channel, job.descriptors, hide=hide)
    os._exit(0)


def hide() -> None:
    """Closes ``/proc/1`` to the program (PR_SET_DUMPABLE, prctl(2)). Imported here: it costs while the child sets itself up."""
    import ctypes

    if ctypes.CDLL(None).prctl(4, 0, 0, 0, 0) != 0:
        raise OSError("PR_SET_DUMPABLE failed")


if __name__ == "__main__":
    main()
