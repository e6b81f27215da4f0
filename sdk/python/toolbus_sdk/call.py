"""The call that the present thread or task works on, and what a tool may ask of it."""

import collections
import contextvars
import ctypes
import os
import threading
import typing
from contextlib import contextmanager

current: "contextvars.ContextVar[Call]" = contextvars.ContextVar("toolbus_call")
MISSING: typing.Any = object()
T = typing.TypeVar("T")
MOST_ASKS = 16  # the pool carries out as many of a call at a time, and refuses more than a thousand
MAX_PROGRESS_LENGTH = 100_000  # the pool shows the first thousand, once it has struck out what is secret


class CallCanceled(BaseException):
    """Raised in a function whose call was canceled; like KeyboardInterrupt no `except Exception` catches it."""


class Call:
    """One request. A function that runs in a thread is interrupted by an exception that is raised inside of it; the lock
    decides whether that is still possible: never after the function has ended, never while a line is being written."""

    def __init__(self, frame, channel):
        self.id = frame["id"]
        self.function = frame["function"]
        self.kwargs = frame.get("kwargs") or {}
        self.config: dict[str, typing.Any] = frame.get("config") or {}
        self.secrets: dict[str, str] = frame.get("secrets") or {}
        self.unread: str | None = frame.get("unread")
        self.idempotency_key: str = frame.get("idempotency_key") or ""
        self.channel = channel
        self.log_lines = 0
        self._lock = threading.Lock()
        self._thread = None
        self._writers = 0
        self._is_canceled = False
        self._is_interrupted = False
        self._futures = []
        self._asks = 0
        self._held = collections.deque()

    def enter_thread(self):
        """From here on a cancel interrupts this thread. Raises at once if the call was canceled before."""
        with self._lock:
            self._thread = threading.get_ident()
            if self._is_canceled:
                raise CallCanceled

    def leave_thread(self):
        """Once this has returned, no interruption comes to the thread any more. One that is on its way is raised here, at
        most once a call: who catches it calls this again."""
        with self._lock:
            self._thread = None
        for _ in range(10):
            pass  # where the interpreter raises what is on its way

    def wait_for(self, future):
        """No interruption reaches a thread that waits, so a cancel ends what it waits for."""
        with self._lock:
            self._futures = [one for one in self._futures if not one.done()] + [future]
            is_canceled = self._is_canceled
        if is_canceled:
            future.cancel()

    def takes_turn(self, future, line):
        """Whether what is asked is to be sent now; else it is held until an earlier ask is answered."""
        with self._lock:
            if self._asks < MOST_ASKS:
                self._asks += 1
                return True
            self._held.append((future, line))
            return False

    def give_turn(self):
        """An ask is answered: the next that is waited for is sent in its place."""
        with self._lock:
            while self._held:
                future, line = self._held.popleft()
                if not future.cancelled():
                    break
            else:
                self._asks -= 1
                return
        self.channel.send(line)

    def cancel(self):
        with self._lock:
            self._is_canceled = True
            self._interrupt_if_possible()
            futures = self._futures
        for future in futures:
            future.cancel()

    def _interrupt_if_possible(self):
        if self._thread is None or self._writers > 0 or self._is_interrupted:
            return
        self._is_interrupted = True
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread), ctypes.py_object(CallCanceled))

    @contextmanager
    def writing(self):
        """No interruption while a line is written, so that no half line stands in the protocol; it comes right after."""
        with self._lock:
            self._writers += 1
        for _ in range(2):
            pass  # an interruption that is on its way is raised here, before the first byte
        try:
            yield
        finally:
            with self._lock:
                self._writers -= 1
                if self._is_canceled:
                    self._interrupt_if_possible()


def renew_locks():
    """In the child of a fork: whoever held them there is no thread of it."""
    call = current.get(None)
    if call is not None:
        call._lock = threading.Lock()
        call.channel.renew_lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=renew_locks)


def running_call() -> Call:
    call = current.get(None)
    if call is None:
        raise RuntimeError("no call is running here: ask inside of a tool's function, in its own thread or task")
    return call


def get_config(path: str, default: typing.Any = None) -> typing.Any:
    """The configuration of the present call at a path like `"server.url"`; the default where there is nothing."""
    value: typing.Any = running_call().config
    for key in path.split("."):
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            return default
    return value


@typing.overload
def get_secret(name: str) -> str: ...
@typing.overload
def get_secret(name: str, default: T) -> "str | T": ...
def get_secret(name: str, default: typing.Any = MISSING) -> typing.Any:
    """A secret that the tool's entry names. Raises LookupError for any other unless there is a default."""
    secrets = running_call().secrets
    if name in secrets:
        return secrets[name]
    if default is MISSING:
        raise LookupError(f'this tool is not given the secret "{name}"; name it in `secrets` of the tool\'s entry')
    return default


def get_idempotency_key() -> str:
    """Equal for each execution of one call, which may be repeated after a crash: hand it to whoever does once what is asked
    twice. Empty where the call has none."""
    return running_call().idempotency_key


def progress(done: float, total: float = 0, message: str = "") -> None:
    """Tells how far the call has come, in the tool's own unit; a total of 0 means unknown."""
    call = running_call()
    with call.writing():
        call.channel.send_progress(call.id, float(done), float(total or 0), str(message)[:MAX_PROGRESS_LENGTH])
