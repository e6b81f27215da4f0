"""Calls of other tools on behalf of the present call: the pool makes them, under the policy of the agent that called."""

import asyncio
import concurrent.futures
import itertools
import threading
import typing

from toolbus_sdk.call import CallCanceled, running_call
from toolbus_sdk.threads import leave_place


class ToolError(Exception):
    """What a tool that was called answered as its error, or why it was not called."""


class Asks:
    """What was asked of the pool and is not answered yet."""

    def __init__(self):
        self._ids = itertools.count(1)
        self._waiting = {}
        self._lock = threading.Lock()

    def open(self, call):
        future: concurrent.futures.Future[typing.Any] = concurrent.futures.Future()
        with self._lock:
            ask_id = next(self._ids)
            self._waiting[ask_id] = call, future
        return ask_id, future

    def forget(self, ask_id):
        with self._lock:
            return self._waiting.pop(ask_id, None)

    def answer(self, frame):
        call, future = self.forget(frame["reply"]) or (None, None)
        if call is not None:
            call.give_turn()
        if future is None or not future.set_running_or_notify_cancel():
            return  # the call that asked is over
        error = frame.get("error") or frame.get("unread")
        if error is None:
            future.set_result(frame.get("result"))
        else:
            future.set_exception(ToolError(error))


def call_tool(name: str, /, **arguments: typing.Any) -> typing.Any:
    """Calls another tool of the agent that called this one, and gives its result: `call_tool("search", text="x")`, in a
    coroutine `await call_tool(...)`. Raises ToolError with the tool's error, or with why it was not called."""
    call = running_call()
    ask_id, future = call.channel.asks.open(call)
    call.wait_for(future)
    try:
        line = call.channel.ask_line(call.id, ask_id, name, arguments)
        if call.takes_turn(future, line):
            with call.writing():
                call.channel.send(line)
    except BaseException:
        call.channel.asks.forget(ask_id)
        raise
    if is_in_loop():
        return asyncio.wrap_future(future)
    try:
        leave_place()
        return future.result()
    except concurrent.futures.CancelledError:
        raise CallCanceled from None


def is_in_loop():
    try:
        asyncio.get_running_loop()
        return True
    except RuntimeError:
        return False
