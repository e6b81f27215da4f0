"""What a hostile tool tries, to reach what it was not given; prints a list of what it reached, as JSON in base64.

`hostile-programs.ts` makes a script of it. The words that it searches stand there in base64, since its own process shows them.
"""

import base64
import ctypes
import glob
import http.client
import json
import os
import socket
import stat
from urllib.parse import urlsplit

PTRACE_SEIZE = 0x4206
OF_THE_SUITE = (b"nats-server", b"services-program", b"cli/main", b"vitest")
words = {}
reached = []


def words_in(content):
    return [name for name, word in words.items() if word.encode() in content]


def words_of(path):
    with open(path, "rb") as file:
        return words_in(file.read(1 << 20))


def tries(kind):
    """What the operating system refuses is not reached."""

    def decorate(attempt):
        def play(*args):
            try:
                found = attempt(*args)
            except (OSError, http.client.HTTPException):
                return
            if found:
                reached.append(f"{kind}: {found}")

        return play

    return decorate


@tries("environment")
def read_environment(pid):
    """Of this process too, which has that of the tool."""
    return [name for part in ("environ", "cmdline") for name in words_of(f"/proc/{pid}/{part}")]


def is_of_the_suite(pid):
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        line = file.read()
    program = line.split(b"\0")[0]
    return not program.endswith(b"bwrap") and any(part in line for part in OF_THE_SUITE)


@tries("memory")
def open_memory(pid):
    if is_of_the_suite(pid):
        with open(f"/proc/{pid}/mem", "rb"):
            return pid


@tries("trace")
def trace(pid):
    """The end of this process ends it."""
    if is_of_the_suite(pid) and ctypes.CDLL(None).ptrace(PTRACE_SEIZE, int(pid), None, None) == 0:
        return pid


@tries("signal")
def send_nothing(pid):
    if is_of_the_suite(pid):
        os.kill(int(pid), 0)
        return pid


@tries("file")
def read_file(path):
    return [f"{name} in {path}" for name in words_of(path)]


@tries("another's file")
def open_file(path):
    with open(path, "rb"):
        return path


@tries("change")
def open_for_writing(path):
    with open(path, "r+b"):
        return path


@tries("start")
def make_or_move(path):
    """Puts back what it has moved, and takes away what it has made."""
    if os.path.lexists(path):
        os.rename(path, f"{path}.moved")
        os.rename(f"{path}.moved", path)
        return path
    folder = os.path.dirname(path)
    had_folder = os.path.isdir(folder)
    os.makedirs(folder, exist_ok=True)
    with open(path, "xb"):
        os.remove(path)
    if not had_folder:
        os.rmdir(folder)
    return path


@tries("disk")
def open_disk(path):
    if stat.S_ISBLK(os.stat(path).st_mode):
        with open(path, "rb"):
            return path


@tries("bus")
def speak_on_bus(url):
    with socket.create_connection((url.hostname, url.port), timeout=5) as link:
        link.recv(65536)
        link.sendall(b'CONNECT {"verbose":false,"lang":"python"}\r\nSUB > 1\r\nPING\r\n')
        link.settimeout(5)
        answer = link.recv(65536)
        return b"-ERR" not in answer and answer.decode()


@tries("gateway")
def ask_gateway(url):
    link = http.client.HTTPConnection(url.netloc, timeout=5)
    link.request("POST", "/toolbus.session.v1.SessionService/ListSessions", "{}", {"content-type": "application/json"})
    answer = link.getresponse()
    return answer.status == 200 and answer.read().decode()


def files_below(directory):
    return [os.path.join(folder, name) for folder, _, names in os.walk(directory) for name in names]


def main(told):
    """Tries all of it."""
    words.update(told["words"])
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for attempt in (read_environment, open_memory, trace, send_nothing):
            attempt(pid)
    for path in (path for directory in told["directories"] for path in files_below(directory)):
        read_file(path)
    for path in told["files"]:
        open_file(path)
    for path in told["programs"]:
        open_for_writing(path)
    for path in told["starts"]:
        make_or_move(path)
    for path in glob.glob("/dev/*"):
        open_disk(path)
    speak_on_bus(urlsplit(told["bus"]))
    ask_gateway(urlsplit(told["gateway"]))
    print(f"reached<{base64.b64encode(json.dumps(reached).encode()).decode()}>")
