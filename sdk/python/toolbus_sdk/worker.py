"""The worker: takes requests from the pool, runs functions in threads or as coroutines, answers each by its id.

What must stay true:
W1  Nothing but whole frames reaches the protocol, whatever the tool prints (`descriptors.py`).
W2  Each request is answered exactly once, with its own id, whatever its function raises or returns.
W3  A function that was interrupted has answered for itself: the interruption never reaches the next call of its thread
    (`call.py`).
W4  The main thread only reads requests, so that a cancel is seen while functions run.
"""

import asyncio
import contextvars
import faulthandler
import functools
import inspect
import os
import platform
import sys
import time
import traceback

import toolbus_sdk
from toolbus_sdk.arguments import bound_arguments, json_from_value
from toolbus_sdk.call import Call, CallCanceled, current
from toolbus_sdk.channel import Channel, json_bytes
from toolbus_sdk.descriptors import take_protocol
from toolbus_sdk.limits import apply_limits
from toolbus_sdk.logs import redirect_prints, shortened, text_of, write_log
from toolbus_sdk.loops import BLOCKED_S, Loops
from toolbus_sdk.settings import Settings, settings_from_arguments
from toolbus_sdk.threads import Threads
from toolbus_sdk.tool_module import functions_of, import_tool

NULL = b"null"
CANCELED = "the call was canceled"
PROTOCOL = 1
running: "list[Worker]" = []


def worker_main() -> None:
    """Serves the functions of the script that calls it, until the pool closes its end. Belongs to the end of a tool file:
    `if __name__ == "__main__": worker_main()`. Where a worker serves the file already, it does nothing."""
    if running:
        return
    worker = Worker(Settings())
    worker.serve(functions_of(sys.modules["__main__"]))


def run_file(arguments):
    """Imports a tool file and serves it. If the file cannot be imported, one frame says so to the pool."""
    settings = settings_from_arguments(arguments)
    sys.argv[:] = [settings.file]
    worker = Worker(settings)
    faulthandler.enable(2, all_threads=False)  # those of other calls would push it out of the report
    apply_limits(settings.memory_bytes, settings.processor_seconds)
    try:
        functions = functions_of(import_tool(settings.file))
    except BaseException as error:
        write_log("error", text_of_traceback(error))
        worker.channel.send_fatal(text_of_error(error))
        os._exit(1)  # threads that the tool has started would keep the process
    worker.serve(functions)


class Worker:
    def __init__(self, settings):
        running.append(self)
        self.process_id = os.getpid()
        self.channel = Channel(*take_protocol(), settings.max_line_bytes)
        self.prints = redirect_prints()
        self.threads = Threads(settings.threads)
        self.loops = Loops(settings.threads, tell_blocked)
        self.functions = {}
        self.cancels = {}

    def serve(self, functions):
        self.functions = functions
        versions = {"protocol": PROTOCOL, "python": platform.python_version(), "sdk": toolbus_sdk.__version__}
        self.channel.send_ready(sorted(functions), versions)
        for frame in self.channel.frames():
            if "cancel" in frame:
                self.cancel(frame["cancel"])
            elif "reply" in frame:
                self.channel.asks.answer(frame)
            else:
                self.start_or_fail(Call(frame, self.channel))
        self.wait_for_calls()

    def wait_for_calls(self):
        """The pool closes its end when no call is left, or ends the process; by hand, requests may come from a file."""
        while self.cancels:
            time.sleep(0.01)

    def cancel(self, call_id):
        cancel = self.cancels.get(call_id)
        if cancel is not None:
            cancel()

    def start_or_fail(self, call):
        """W4: where no thread is to be had, it is the error of this call, and the others go on."""
        try:
            self.start(call)
        except Exception as error:
            self.answer_failure(call, error)

    def start(self, call):
        function = self.functions.get(call.function)
        context = contextvars.copy_context()
        context.run(current.set, call)
        if call.unread is not None:
            self.answer_error(call, f"ValueError: {call.unread}")
        elif function is None:
            words = f"there is no function {call.function}, or a decorator has made something else of it"
            self.answer_error(call, f"LookupError: {words}")
        elif inspect.iscoroutinefunction(function):
            self.start_coroutine(call, lambda: call_function(function, call.kwargs), context)
        else:
            self.cancels[call.id] = call.cancel  # before the start: an instant answer takes it away again
            self.threads.submit(context.run, self.run_function, call, function)

    def run_function(self, call, function):
        """In a thread. W3: at most one interruption comes, and after the last `leave_thread` none."""
        try:
            try:
                call.enter_thread()
                result = call_function(function, call.kwargs)
            finally:
                call.leave_thread()
                self.end_if_forked()
        except BaseException as error:
            call.leave_thread()
            self.answer_failure(call, error)
            return
        if inspect.isawaitable(result):
            # In a copy: no other thread can enter the context before this one has left it.
            self.start_coroutine(call, lambda: result, contextvars.copy_context())
        else:
            self.answer_result(call, result)

    def end_if_forked(self):
        """W2: a child that a function has forked, and that comes out of it, is not who answers."""
        if os.getpid() != self.process_id:
            os._exit(0)

    def start_coroutine(self, call, work, context):
        def on_done(task):
            if task.cancelled():
                self.answer_error(call, CANCELED)
            else:
                task.result()()

        start, self.cancels[call.id] = self.loops.prepare(self.outcome_of(call, work), context, on_done, call)
        start()  # only now: an instant answer takes the cancel away again

    async def outcome_of(self, call, work):
        """The answer to give. What a coroutine raises, SystemExit too, ends its call and not the loop of all."""
        try:
            result = await work()
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            return functools.partial(self.answer_failure, call, error)
        return functools.partial(self.answer_result, call, result)

    def answer_result(self, call, result):
        try:
            line = json_bytes(result, json_from_value)
        except BaseException as error:
            self.answer_error(call, f"the result is not JSON: {text_of_error(error)}")
            return
        limit = self.channel.max_line_bytes
        if len(line) > limit:
            self.answer_error(call, f"the result has {len(line)} bytes, over the limit of {limit}")
            return
        self.answer(call, line, NULL)

    def answer_failure(self, call, error):
        if isinstance(error, CallCanceled):
            self.answer_error(call, CANCELED)
            return
        write_log("error", text_of_traceback(error), {"exception": type(error).__name__}, call)
        self.answer_error(call, text_of_error(error))

    def answer_error(self, call, text):
        line = json_bytes(text)
        is_whole = len(line) <= self.channel.max_line_bytes
        self.answer(call, NULL, line if is_whole else json_bytes(shortened(text)))

    def answer(self, call, result, error):
        self.cancels.pop(call.id, None)
        for stream in self.prints:
            stream.finish(call)
        self.channel.send_answer(call.id, result, error, call.log_lines)


def tell_blocked(call, frames):
    """A coroutine that waits without `await` holds up all others on its loop."""
    steps = [index for index, frame in enumerate(frames) if frame.name == "_run" and "asyncio" in frame.filename]
    own = [frame for frame in frames[steps[-1] + 1 if steps else 0 :] if "toolbus_sdk" not in frame.filename]
    at = [f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in own[:5]]
    name = call.function if call is not None else "a coroutine"
    text = f"{name} has held up the loop of all coroutines for {BLOCKED_S:g} s: calls that begin now run on another loop. "
    write_log("warn", text + "Put what waits or computes into `await asyncio.to_thread(…)`", {"at": at}, call)


def call_function(function, kwargs):
    positional, named = bound_arguments(function, kwargs)
    return function(*positional, **named)


def text_of_error(error):
    """`ValueError: bad`; the name alone where there is no text."""
    text = text_of(error)
    name = type(error).__name__
    return f"{name}: {text}" if text else name


def text_of_traceback(error):
    """The traceback from the tool's own first line on."""
    frames = error.__traceback__
    while frames is not None and "toolbus_sdk" in frames.tb_frame.f_code.co_filename and frames.tb_next is not None:
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(error), error, frames)).rstrip()
