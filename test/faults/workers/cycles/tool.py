# /// script
# dependencies = []
# ///
"""What a worker leaves behind if nobody cleans up: children, also in sessions of their own, and files that it holds open."""

import os
import signal
import subprocess
import time

HELD = []


def start():
    HELD.append(open(__file__))
    subprocess.Popen(["sleep", "900"], stdout=subprocess.DEVNULL)
    subprocess.Popen(["sleep", "900"], start_new_session=True)
    subprocess.Popen(["sh", "-c", "sleep 900 & sleep 900"], start_new_session=True, stdout=subprocess.DEVNULL)
    return os.getpid()


def leave():
    os._exit(3)


def kill():
    os.kill(os.getpid(), signal.SIGKILL)


def rest():
    time.sleep(60)
