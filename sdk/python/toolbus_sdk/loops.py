"""asyncio loops, each in a thread of its own. One serves all coroutines, until one of them holds it up without awaiting.

A coroutine that has begun stays on its loop. Those that have not, and all that come, go to another loop meanwhile.
"""

import asyncio
import collections
import functools
import sys
import threading
import time
import traceback
import weakref

BLOCKED_S = 1.0
LOOK_S = 0.25


class Work:
    """A coroutine on its way to a loop, or on one. `on_done` is called with its task, also when it was canceled before its
    first step."""

    def __init__(self, coroutine, context, on_done, call):
        self.coroutine = coroutine
        self.context = context
        self.on_done = on_done
        self.call = call
        self.loop = None
        self.task = None
        self.is_canceled = False


class Loop:
    def __init__(self, name):
        self.asyncio_loop = asyncio.new_event_loop()
        self.waiting = collections.deque()
        self.calls = weakref.WeakKeyDictionary()
        self.is_beginning = False
        self.asked_at = None
        self.is_blocked = False
        self.thread = threading.Thread(target=self.run, name=name, daemon=True)
        self.thread.start()

    def run(self):
        """It goes on where a tool stops it, or leaves it by SystemExit in a task of its own."""
        while True:
            try:
                self.asyncio_loop.run_forever()
            except BaseException:
                traceback.print_exc()
                time.sleep(0.05)  # where it was broken for good, it says so a few times a second

    def add(self, work):
        work.loop = self
        self.waiting.append(work)
        self.asyncio_loop.call_soon_threadsafe(self.begin)

    def begin(self):
        if not self.is_beginning:
            self.is_beginning = True
            self.begin_next()

    def begin_next(self):
        """Each takes its first step before the next one begins: what waits behind one that blocks can still be moved."""
        try:
            work = self.waiting.popleft()
        except IndexError:  # all have begun, or were given to another loop
            self.is_beginning = False
            return
        work.task = work.context.run(self.asyncio_loop.create_task, work.coroutine)
        self.calls[work.task] = work.call
        work.task.add_done_callback(work.on_done)
        if work.is_canceled:
            work.task.cancel()
        self.asyncio_loop.call_soon(self.begin_next)

    def look(self):
        """Whether it is blocked since the last look. It is asked for a sign of life, and asked again once it has given it."""
        now = time.monotonic()
        if self.asked_at is None:
            self.asked_at = now
            self.asyncio_loop.call_soon_threadsafe(self.answer)
        elif not self.is_blocked and now - self.asked_at > BLOCKED_S and self.frames():
            self.is_blocked = True
            return True
        return False

    def answer(self):
        self.asked_at = None
        self.is_blocked = False

    def frames(self):
        """Where its thread is inside of a coroutine, the innermost last; empty where the machine is what is slow."""
        frame = sys._current_frames().get(self.thread.ident)
        stack = traceback.extract_stack(frame) if frame is not None else []
        return [] if not stack or stack[-1].filename.endswith(("selectors.py", "base_events.py")) else stack


class Loops:
    def __init__(self, limit, on_blocked):
        """`on_blocked` is called with the call that holds a loop up, and where it does."""
        self._limit = limit
        self._on_blocked = on_blocked
        self._loops = []
        self._in_flight = 0
        self._condition = threading.Condition()

    def prepare(self, coroutine, context, on_done, call=None):
        """The functions (start, cancel) of a task that runs the coroutine in the given context, to be called from any
        thread."""
        work = Work(coroutine, context, functools.partial(self._finish, on_done), call)
        return functools.partial(self._start, work), functools.partial(self._cancel, work)

    def _start(self, work):
        with self._condition:
            self._free_loop().add(work)
            self._in_flight += 1
            self._condition.notify()

    def _finish(self, on_done, task):
        with self._condition:
            self._in_flight -= 1
        on_done(task)

    def _cancel(self, work):
        with self._condition:
            work.is_canceled = True
            if work.task is not None:
                work.loop.asyncio_loop.call_soon_threadsafe(work.task.cancel)

    def _free_loop(self):
        free = next((loop for loop in self._loops if not loop.is_blocked), None)
        if free is None and len(self._loops) < self._limit:
            if not self._loops:
                threading.Thread(target=self._watch, name="coroutines-watch", daemon=True).start()
            free = Loop(f"coroutines-{len(self._loops) + 1}")
            self._loops.append(free)
        return free or self._loops[0]

    def _watch(self):
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._in_flight > 0)
                blocked = [loop for loop in self._loops if loop.look()]
                for loop in blocked:
                    self._move(loop)
            for loop in blocked:
                self._tell(loop)
            time.sleep(LOOK_S)

    def _move(self, loop):
        other = self._free_loop()
        while other is not loop and loop.waiting:
            try:
                other.add(loop.waiting.popleft())
            except IndexError:
                return  # it has begun after all

    def _tell(self, loop):
        try:
            task = asyncio.current_task(loop.asyncio_loop)
        except RuntimeError:
            task = None  # this Python tells it to the loop's own thread only
        self._on_blocked(loop.calls.get(task), loop.frames())
