"""Streams that bring work until they are closed; one that breaks is opened again."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import grpc

from toolbus.connection import Connection
from toolbus.errors import Broken, error_of


class KeptStream:
    """`open_stream` opens it, `take` gets what it brings.

    It stands for as long as its program does, or until one of the reasons in `over` ends it."""

    def __init__(
        self,
        connection: Connection,
        open_stream: Callable[[], Any],
        take: Callable[[Any], None],
        over: frozenset[str] = frozenset(),
    ) -> None:
        self._connection = connection
        self._open = open_stream
        self._take = take
        self._over = over
        self._closing = False
        self._call: Any = None
        self._failure: Exception | None = None
        self.standing = threading.Event()
        self._thread = threading.Thread(target=self._read, name="toolbus-stream", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closing = True
        if self._call is not None:
            self._call.cancel()
        if threading.current_thread() is not self._thread:  # what it calls may close it
            self._thread.join()

    def when_standing(self) -> None:
        """Raises what ended it before."""
        self.standing.wait()
        if self._failure is not None:
            raise self._failure

    def wait(self) -> None:
        """Until it was closed, or its session was; raises what ended it else."""
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def __enter__(self) -> "KeptStream":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self) -> None:
        def endless() -> Iterator[Any]:
            if self._closing:
                return
            self._call = self._open()
            if self._closing:
                self._call.cancel()  # whoever closes it may have looked before it was there
            yield from self._call
            if not self._closing:
                raise Broken()

        try:
            for message in self._connection.resumed(endless, float("inf")):
                self._take(message)
        except grpc.RpcError as error:
            failure = error_of(error)
            if not self._closing and failure.reason not in self._over:
                self._failure = failure
        except Exception as error:  # the program's own
            self._failure = error
        finally:
            if self._call is not None:
                self._call.cancel()  # a stream that is left would go on
            self.standing.set()
