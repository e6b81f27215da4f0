"""A worker as its pool sees it: a process, lines in and lines out."""

import json
import os
import subprocess
import sys
import tempfile
import textwrap
import threading

SDK = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TIMEOUT_S = 20


class Worker:
    """A worker of the given tool text, started as the pool does it, or by its own `worker_main()`."""

    def __init__(self, text, *options, name="tool.py", by_itself=False):
        self.directory = tempfile.TemporaryDirectory()
        path = os.path.join(self.directory.name, name)
        with open(path, "w") as file:
            file.write(textwrap.dedent(text))
        start = [path] if by_itself else [os.path.join(SDK, "toolbus_sdk"), *options, path]
        self.process = subprocess.Popen(
            [sys.executable, *start],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": SDK if by_itself else "", "PYTHONDONTWRITEBYTECODE": ""},
        )
        self.stderr = []
        self.drain = threading.Thread(target=lambda: self.stderr.extend(self.process.stderr), daemon=True)
        self.drain.start()
        self.timer = threading.Timer(TIMEOUT_S, self.process.kill)
        self.timer.start()

    def send(self, **frame):
        self.process.stdin.write(json.dumps(frame).encode() + b"\n")
        self.process.stdin.flush()

    def read(self):
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def call(self, function, **kwargs):
        self.send(id=1, function=function, kwargs=kwargs)
        return self.read()

    def logs(self):
        """What it wrote to stderr, once it has ended."""
        self.process.stdin.close()
        self.process.wait()
        self.drain.join()
        return [line.decode().rstrip("\n") for line in self.stderr]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.timer.cancel()
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.drain.join()
        self.process.stdout.close()
        self.process.stderr.close()
        self.directory.cleanup()
