"""Logs: one JSON line each on stderr, labelled with the call that wrote it. `print` becomes such lines too."""

import contextlib
import contextvars
import io
import logging
import os
import sys
import threading
import time
import typing

from toolbus_sdk.call import Call, current
from toolbus_sdk.channel import json_bytes
from toolbus_sdk.descriptors import write_all

MAX_MESSAGE_LENGTH = 8_000
MAX_FIELDS_BYTES = 16_000
STDERR = 2
write_lock = threading.Lock()
if hasattr(os, "register_at_fork"):  # a child of a fork has no other thread, which could give the lock back
    os.register_at_fork(before=write_lock.acquire, after_in_parent=write_lock.release, after_in_child=write_lock.release)
fields_of_steps: "contextvars.ContextVar[dict[str, typing.Any]]" = contextvars.ContextVar("toolbus_log", default={})  # noqa: B039


def write_log(
    level: str, message: object, fields: "dict[str, typing.Any] | None" = None, call: "Call | None" = None
) -> None:
    """Messages and fields that are too long are cut, and say so."""
    call = call or current.get(None)
    text = shortened(text_of(message))
    entry: dict[str, typing.Any] = {"toolbus": "log", "time": time.time(), "level": level, "message": text}
    if call is not None:
        entry["id"] = call.id
    fields = {**fields_of_steps.get(), **(fields or {})}
    if fields:
        entry["fields"] = safe_fields(fields)
    line = json_bytes(entry) + b"\n"
    if call is None:
        write_line(line)
        return
    with call.writing():
        write_line(line)
        call.log_lines += 1


def write_line(line):
    with write_lock:
        write_all(STDERR, line)


def text_of(value):
    try:
        return str(value)
    except Exception:
        return "its text cannot be made"


def shortened(text):
    if len(text) <= MAX_MESSAGE_LENGTH:
        return text
    half = MAX_MESSAGE_LENGTH // 2
    return f"{text[:half]} … {len(text) - 2 * half} characters left out … {text[-half:]}"


def safe_fields(fields):
    """Fields as JSON can hold them; a value that it cannot hold stands as its text."""
    safe = {}
    for name, value in fields.items():
        try:
            json_bytes(value)
            safe[name] = value
        except Exception:
            safe[name] = shortened(text_of(value))
    return safe if len(json_bytes(safe)) <= MAX_FIELDS_BYTES else {"left_out": sorted(safe)[:100]}


class Log:
    """`log.info("fetched", url=url, bytes=12)`; `with log("fetch", url=url): …` for a step with a beginning and an end."""

    @contextlib.contextmanager
    def __call__(self, step: str, /, **fields: typing.Any) -> "typing.Iterator[None]":
        """Lines inside of the step carry its fields. Its end is a line with how long it took, and with what it raised."""
        token = fields_of_steps.set({**fields_of_steps.get(), **fields})
        started = time.monotonic()
        level, ending = "info", {}
        try:
            yield
        except BaseException as error:
            level, ending = "error" if isinstance(error, Exception) else "warn", {"raised": type(error).__name__}
            raise
        finally:
            write_log(level, step, {**ending, "seconds": round(time.monotonic() - started, 6)})
            fields_of_steps.reset(token)

    def debug(self, message: object, /, **fields: typing.Any) -> None:
        write_log("debug", message, fields)

    def info(self, message: object, /, **fields: typing.Any) -> None:
        write_log("info", message, fields)

    def warning(self, message: object, /, **fields: typing.Any) -> None:
        write_log("warn", message, fields)

    warn = warning

    def error(self, message: object, /, **fields: typing.Any) -> None:
        write_log("error", message, fields)


log = Log()


class LogHandler(logging.Handler):
    """What tools and their libraries write with `logging`."""

    def emit(self, record):
        try:
            write_log(level_from_number(record.levelno), self.format(record), {"logger": record.name})
        except Exception:
            self.handleError(record)


def level_from_number(number):
    if number >= logging.ERROR:
        return "error"
    if number >= logging.WARNING:
        return "warn"
    return "info" if number >= logging.INFO else "debug"


class PrintStream(io.TextIOBase):
    """Stands for sys.stdout and sys.stderr: each line becomes a log line of the call that printed it."""

    encoding = "utf-8"
    errors = "backslashreplace"

    def __init__(self):
        self._pending = {}
        self.buffer = PrintBuffer(self)

    def writable(self):
        return True

    def fileno(self):
        return STDERR

    def isatty(self):
        return False

    def reconfigure(self, **_):
        """Scripts ask for UTF-8 or lines, which it has."""

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        call = current.get(None)
        key = call.id if call is not None else None
        pending = self._pending.pop(key, "") + text
        *lines, rest = pending.split("\n")
        if len(rest) > MAX_MESSAGE_LENGTH:
            lines.append(rest)
        elif rest:
            self._pending[key] = rest
        for line in lines:
            if line.strip():
                write_log("info", line.rstrip("\r"), call=call)
        return len(text)

    def finish(self, call):
        """Writes what the call printed without a line end."""
        rest = self._pending.pop(call.id, "")
        if rest.strip():
            write_log("info", rest, call=call)


class PrintBuffer(io.BufferedIOBase):
    """Takes the bytes that a tool writes below a PrintStream, by itself or in a stream of its own."""

    def __init__(self, stream):
        self._stream = stream

    def writable(self):
        return True

    def write(self, data):
        self._stream.write(bytes(data).decode("utf-8", "backslashreplace"))
        return len(data)

    def close(self):
        """It is there for the next one who wraps it."""


def redirect_prints():
    """From here on `print`, sys.stderr and `logging` write labelled log lines. Gives the streams to finish calls on."""
    streams = [PrintStream(), PrintStream()]
    sys.stdout, sys.stderr = streams
    logging.getLogger().addHandler(LogHandler())
    return streams
