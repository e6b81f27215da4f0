# /// script
# dependencies = []
# ///
"""What well-behaved and hostile tools do. Each call carries a nonce: whatever is shown to its caller may hold no other one."""

import asyncio
import contextvars
import ctypes
import os
import signal
import sys
import threading
import time

from toolbus_sdk import log, progress
from toolbus_sdk.call import running_call

BEGUN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "begun")


def _begin(nonce):
    file = os.open(BEGUN, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, nonce.encode() + b"\n")
    os.close(file)


def _write(frame):
    """Past the SDK, to the pool."""
    os.write(running_call().channel._output, frame.encode())


def plain(nonce: str):
    _begin(nonce)
    return nonce


def talk(nonce: str):
    _begin(nonce)
    for number in range(20):
        print(nonce, number)
    print(nonce, "without an end", end="", file=sys.stderr)
    log.info("told", of=nonce)
    progress(1, 2, nonce)
    os.write(1, b'{"id":1,"result":"printed","error":null}\n')
    return nonce


def threads(nonce: str):
    _begin(nonce)
    inside = contextvars.copy_context()
    started = [
        threading.Thread(target=inside.run, args=(print, nonce)),
        threading.Thread(target=print, args=("of no call", nonce)),
    ]
    for thread in started:
        thread.start()
    started[0].join()
    return nonce


def rest(nonce: str, seconds: float):
    _begin(nonce)
    time.sleep(seconds)
    return nonce


async def rest_async(nonce: str, seconds: float):
    _begin(nonce)
    await asyncio.sleep(seconds)
    print(nonce)
    return nonce


def fail(nonce: str):
    _begin(nonce)
    raise ValueError(nonce)


async def leave(nonce: str):
    _begin(nonce)
    sys.exit(nonce)


def big(nonce: str, count: int):
    _begin(nonce)
    return nonce * count


def no_json(nonce: str):
    _begin(nonce)
    return {nonce: float("nan")}


def fork(nonce: str):
    _begin(nonce)
    child = os.fork()
    if child == 0:
        print(nonce, "in the child")
        return "the child"
    os.waitpid(child, 0)
    return nonce


def exit_process(nonce: str):
    _begin(nonce)
    print(nonce)
    os._exit(3)


def kill(nonce: str):
    _begin(nonce)
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


def crash(nonce: str):
    _begin(nonce)
    ctypes.string_at(0)


def close_output(nonce: str):
    _begin(nonce)
    os.close(running_call().channel._output)
    return nonce


def write_frame(nonce: str, frame: str):
    _begin(nonce)
    _write(frame.replace("ID", str(running_call().id)))
    time.sleep(60)


def answer_twice(nonce: str):
    _begin(nonce)
    _write('{"id":%d,"result":"%s","error":null}\n' % (running_call().id, nonce))
    return "again"
