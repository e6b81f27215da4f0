"""The protocol's lines: one JSON object each. Whole lines, whoever writes at the same time."""

import json
import os
import threading

from toolbus_sdk.asking import Asks
from toolbus_sdk.descriptors import write_all


def json_bytes(value, default=None):
    """Compact JSON. NaN and Infinity are no JSON and are refused; lone surrogates travel as escapes."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=default)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, allow_nan=False, separators=(",", ":"), default=default).encode()


def frame_from_line(line):
    """A request. An integer that Python does not read, of over 4,300 digits, is left out, and `unread` says so: that is a fault
    of one call, and must end no other."""
    try:
        return json.loads(line)
    except ValueError:
        unread = []

        def read(digits):
            try:
                return int(digits)
            except ValueError:
                unread.append(len(digits))

        frame = json.loads(line, parse_int=read)
        frame["unread"] = f"Python does not read an integer of {max(unread)} digits"
        return frame


class Channel:
    def __init__(self, protocol_input, protocol_output, max_line_bytes):
        self._input = os.fdopen(protocol_input, "rb", buffering=256 * 1024, closefd=False)
        self._output = protocol_output
        self._process_id = os.getpid()
        self._lock = threading.Lock()
        self.max_line_bytes = max_line_bytes
        self.asks = Asks()

    def renew_lock(self):
        self._lock = threading.Lock()

    def frames(self):
        """Each request as it comes, until the pool closes its end."""
        for line in self._input:
            if line.strip():
                yield frame_from_line(line)

    def send(self, line):
        """A worker that cannot answer ends, whatever its tool has done to the descriptor: its calls would wait in vain."""
        with self._lock:
            try:
                write_all(self._output, line + b"\n")
            except OSError as error:
                if os.getpid() != self._process_id:
                    raise  # a forked child has no part in the protocol
                os.write(2, f"the worker cannot write to the pool any more: {error}\n".encode())
                os._exit(1)

    def send_ready(self, functions, versions):
        self.send(json_bytes({"ready": True, "pid": os.getpid(), "functions": functions, **versions}))

    def send_fatal(self, reason):
        self.send(json_bytes({"fatal": reason}))

    def send_progress(self, call_id, done, total, message):
        self.send(json_bytes({"id": call_id, "progress": {"done": done, "total": total, "message": message}}))

    def ask_line(self, call_id, ask_id, tool, arguments):
        """The arguments stand before the name, so that the pool can pass their text on."""
        line = json_bytes({"id": call_id, "ask": ask_id, "arguments": arguments, "tool": tool})
        if len(line) > self.max_line_bytes:
            raise ValueError(f"the arguments have {len(line)} bytes, over the limit of {self.max_line_bytes}")
        return line

    def send_answer(self, call_id, result, error, log_lines):
        """`result` and `error` are JSON already. `logs` tells how many log lines of this call went to stderr before."""
        logs = b',"logs":%d' % log_lines if log_lines else b""
        self.send(b'{"id":%d,"result":%b,"error":%b%b}' % (call_id, result, error, logs))
