"""The file descriptors of a worker.

The protocol gets private copies of stdin and stdout, and then 0 reads nothing and 1 is stderr: whatever a tool, a C extension
or a subprocess prints or reads, it never touches the protocol. The copies are not inherited by subprocesses, and a forked
child closes them.
"""

import os
import select

FAR = 200


def take_protocol():
    """The descriptors (input, output) of the protocol; afterwards stdin is empty and stdout is stderr."""
    protocol_input, protocol_output = duplicate(0), duplicate(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: close_all(protocol_input, protocol_output))
    return protocol_input, protocol_output


def duplicate(descriptor):
    """Far from the numbers that are given next: where a tool closes it by mistake, nothing else comes to stand for it."""
    try:
        import fcntl

        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, FAR)
    except (ImportError, OSError):  # no such call, or no such numbers
        return os.dup(descriptor)


def close_all(*descriptors):
    for descriptor in descriptors:
        try:
            os.close(descriptor)
        except OSError:
            pass  # closed already: nothing is left to do


def write_all(descriptor, data):
    """Writes everything, also where somebody has made the pipe non-blocking."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(descriptor, view) :]
        except BlockingIOError:
            select.select([], [descriptor], [])
