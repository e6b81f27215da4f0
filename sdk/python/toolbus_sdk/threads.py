"""Daemon threads for functions that are no coroutines: started when all others are busy, up to a limit."""

import queue
import threading


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
                threading.Thread(target=self._run, name=f"call-{self._count + 1}", daemon=True).start()
                self._count += 1
            else:
                self._free -= 1
        self._work.put((function, args))

    def _run(self):
        while True:
            function, args = self._work.get()
            function(*args)
            del function, args
            with self._lock:
                self._free += 1
