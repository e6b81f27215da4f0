"""One asyncio loop in a thread of its own, started with the first coroutine."""

import asyncio
import functools
import threading


class Loop:
    def __init__(self):
        self._lock = threading.Lock()
        self._loop = None

    def prepare(self, coroutine, context, on_done):
        """The functions (start, cancel) of a task that runs the coroutine in the given context, to be called from any
        thread. `on_done` is called with the task, also when it was canceled before its first step."""
        loop = self._running()
        holder = {}

        def create():
            holder["task"] = context.run(loop.create_task, coroutine)
            holder["task"].add_done_callback(on_done)

        start = functools.partial(loop.call_soon_threadsafe, create)
        cancel = functools.partial(loop.call_soon_threadsafe, lambda: holder["task"].cancel())
        return start, cancel

    def _running(self):
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="coroutines", daemon=True).start()
            return self._loop
