"""One asyncio loop in a thread of its own, started with the first coroutine."""

import asyncio
import threading


class Loop:
    def __init__(self):
        self._lock = threading.Lock()
        self._loop = None

    def start(self, coroutine, context):
        """Runs a coroutine as a task in the given context; the function that it gives back cancels it from any thread."""
        loop = self._running()
        holder = {}

        def create():
            holder["task"] = context.run(loop.create_task, coroutine)

        loop.call_soon_threadsafe(create)
        return lambda: loop.call_soon_threadsafe(lambda: holder["task"].cancel())

    def _running(self):
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="coroutines", daemon=True).start()
            return self._loop
