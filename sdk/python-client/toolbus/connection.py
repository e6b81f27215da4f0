"""The way to the suite, which all that the library does goes."""

import os
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any, TypeVar
from urllib.parse import urlparse

import grpc
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random_exponential

from toolbus.errors import error_of, is_passing

T = TypeVar("T")

# Connections that break are made again soon, and so are those that are cut, which sends no end.
_OPTIONS = [
    ("grpc.keepalive_time_ms", 2_000),
    ("grpc.http2.ping_timeout_ms", 2_000),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
]
_WAITS = wait_random_exponential(multiplier=0.05, max=2)

# What stood for this long was served, though it may have had nothing to tell.
_STANDS_AFTER_S = 10.0


class Connection:
    def __init__(self, url: str | None, api_key: str | None, patience_s: float) -> None:
        given = url or os.environ.get("TOOLBUS_URL", "http://127.0.0.1:7480")
        address = urlparse(given)
        if address.scheme not in ("http", "https") or not address.netloc:
            raise ValueError(f"the address of a gateway is like http://127.0.0.1:7480, and not {given!r}")
        key = api_key if api_key is not None else os.environ.get("TOOLBUS_API_KEY", "")
        self.patience_s = patience_s
        # the line of a file, as it was read
        self._metadata = [("authorization", f"Bearer {key.strip()}")] if key.strip() else []
        if address.scheme == "https":
            self.channel = grpc.secure_channel(address.netloc, grpc.ssl_channel_credentials(), options=_OPTIONS)
        else:
            self.channel = grpc.insecure_channel(address.netloc, options=_OPTIONS)

    def send(self, method: Callable[..., T], request: Any) -> T:
        """Sends what may arrive twice until it is answered; raises a `ToolbusError`."""
        retrying = Retrying(
            retry=retry_if_exception(is_passing), stop=stop_after_delay(self.patience_s), wait=_WAITS, reraise=True
        )
        try:
            return retrying(method, request, metadata=self._metadata)
        except grpc.RpcError as error:
            raise error_of(error) from error

    def stream(self, method: Callable[..., T], request: Any) -> T:
        return method(request, metadata=self._metadata)

    def resumed(self, open_stream: Callable[[], Iterator[T]], patience_s: float) -> Iterator[T]:
        """A stream that breaks is opened again, which `open_stream` does where it broke.

        It is given up when for `patience_s` no opening has told anything or stood for a while."""
        failing_since: float | None = None
        wait_s = 0.05
        while True:
            opened_at = time.monotonic()
            try:
                for message in open_stream():
                    failing_since = None
                    yield message
                return
            except grpc.RpcError as error:
                broke_at = time.monotonic()
                if failing_since is None or broke_at - opened_at > _STANDS_AFTER_S:
                    failing_since, wait_s = broke_at, 0.05
                if not is_passing(error) or broke_at - failing_since > patience_s:
                    raise
            time.sleep(wait_s)
            wait_s = min(wait_s * 2, 2.0)


def random_name() -> str:
    """A name that nobody else has."""
    return uuid.uuid4().hex
