"""Daemon threads for functions that are no coroutines: started when all others are busy, up to a limit.

One whose function has asked for another tool is none of them any more: what is asked for may need a thread.
"""

import queue
import threading
from contextlib import suppress

own = threading.local()


class Threads:
    def __init__(self, limit):
        self._limit = limit
        self._work = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._count = 0
        self._free = 0

    def submit(self, function, *args):
        with self._lock:
            if self._free > 0:
                self._free -= 1
            elif self._count < self._limit:
                self._start()
            else:
                self._free -= 1
        self._work.put((function, args))

    def _start(self):
        threading.Thread(target=self._run, name=f"call-{self._count + 1}", daemon=True).start()
        self._count += 1

    def allow_one_more(self):
        with self._lock:
            self._limit += 1
            if self._free < 0 and self._count < self._limit:
                with suppress(RuntimeError):  # where no thread is to be had, what waits gets one that is free again
                    self._start()
                    self._free += 1

    def _run(self):
        own.threads = self
        while True:
            function, args = self._work.get()
            own.has_asked = False
            function(*args)
            del function, args
            with self._lock:
                self._limit -= own.has_asked
                if self._count > self._limit:
                    self._count -= 1
                    return
                self._free += 1


def leave_place():
    """The function of this thread asks for another tool; in a thread of the tool's own there is nothing to leave."""
    threads = getattr(own, "threads", None)
    if threads is not None and not own.has_asked:
        own.has_asked = True
        threads.allow_one_more()
