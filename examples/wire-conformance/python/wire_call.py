"""One call, as the runner has it: it numbers what it sends, and holds the peer to the rules that hold for every frame."""

import asyncio
import time
from dataclasses import dataclass, field

from bodies import HeaderLines

KINDS = {"data": 1, "end": 2, "error": 3, "cancel": 4, "credit": 5, "heartbeat": 6}
MORE, END = 1, 2
FLAGS = {"more": MORE, "end": END}
HEAD_BYTES = 6
HEARTBEAT_S = 0.9


@dataclass
class Credit:
    messages: int = 0
    bytes: int = 0

    def add(self, messages: int, byte_count: int) -> None:
        self.messages += messages
        self.bytes += byte_count


@dataclass
class Arrival:
    at: float
    kind: int
    flags: int
    body: bytes
    headers: dict[str, str] | None
    status: str | None
    says_inbox: bool

    @property
    def is_passed_over(self) -> bool:
        return self.status is None and self.kind in (KINDS["heartbeat"], KINDS["credit"])


@dataclass
class WireCall:
    """As a server, with the inbox of a client that has opened the call; else as a client, who learns its server's."""

    connection: object
    peer: str | None = None
    arrivals: list[Arrival] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    granted: Credit = field(default_factory=Credit)
    """What the peer may still send."""
    credit: Credit = field(default_factory=Credit)
    """What we may send."""
    is_mute: bool = False

    def __post_init__(self):
        self.inbox = self.connection.new_inbox()
        self.is_server = self.peer is not None
        self._sent = self._expected = 0
        self._sent_at = 0.0
        self._is_within = False

    async def listen(self) -> None:
        self._subscription = await self.connection.subscribe(self.inbox, cb=self._arrived)
        self._beats = asyncio.create_task(self._beat())

    async def send(self, kind: int, flags: int, body: bytes, headers: dict | None = None, reply: bool | None = None):
        """Sends a frame, with our inbox as its reply where the rules want it."""
        is_only = flags & END or kind in (KINDS["end"], KINDS["error"])
        says_inbox = kind == KINDS["heartbeat"] or (self._sent == 0 and not is_only) if reply is None else reply
        frame = bytes([kind, flags]) + self._sent.to_bytes(4, "big") + body
        self._sent += 1
        if kind == KINDS["credit"] and len(body) == 8:
            self.granted.add(*credit_of(body))
        await self.publish(frame, headers, self.inbox if says_inbox else "")

    async def publish(self, frame: bytes, headers: dict | None = None, reply: str = "") -> None:
        """Sends bytes that may be no frame."""
        self._sent_at = time.monotonic()
        await self.connection.publish(self.peer, frame, reply, headers=HeaderLines(headers) if headers else None)

    def skip(self, numbers: int) -> None:
        self._sent += numbers

    async def leave(self) -> None:
        self.is_mute = True
        self._beats.cancel()
        if not self._subscription._closed:
            await self._subscription.unsubscribe()

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(0.1)
            has_begun = self.peer is not None and (self._sent > 0 or not self.is_server)
            if has_begun and not self.is_mute and time.monotonic() - self._sent_at >= HEARTBEAT_S:
                await self.send(KINDS["heartbeat"], 0, b"")

    async def _arrived(self, message) -> None:
        headers, data = message.headers, message.data
        status = headers.get("Status") if headers and not data else None
        if status is None:
            self._check(data, bool(message.reply))
        if message.reply and self.peer is None:
            self.peer = message.reply
        body = data[HEAD_BYTES:]
        kind, flags = (data[0], data[1]) if len(data) > 1 else (0, 0)
        if kind == KINDS["credit"] and len(body) == 8:
            self.credit.add(*credit_of(body))
        self.arrivals.append(Arrival(time.monotonic(), kind, flags, body, headers, status, bool(message.reply)))

    def _check(self, data: bytes, says_inbox: bool) -> None:
        if len(data) < HEAD_BYTES or data[0] not in KINDS.values():
            self.faults.append(f"what came is no frame: {data[:16].hex()}")
            return
        kind, flags, number = data[0], data[1], int.from_bytes(data[2:6], "big")
        if number != self._expected:
            self.faults.append(f"frame {number} came where {self._expected} was to come")
        self._expected += 1
        if flags > END or (flags and kind != KINDS["data"]):
            self.faults.append(f"frame {number} has flags {flags}")
        is_only = flags & END or kind in (KINDS["end"], KINDS["error"])
        if (kind == KINDS["heartbeat"] or (number == 0 and not self.is_server and not is_only)) and not says_inbox:
            self.faults.append(f"frame {number} carries no inbox")
        if kind == KINDS["heartbeat"] and len(data) > HEAD_BYTES:
            self.faults.append("a heartbeat has a body")
        if kind == KINDS["data"]:
            self._pay(len(data) - HEAD_BYTES, bool(flags & MORE))

    def _pay(self, byte_count: int, has_more: bool) -> None:
        self.granted.add(0 if self._is_within else -1, -byte_count)
        self._is_within = has_more
        if self.granted.messages < 0 or self.granted.bytes < 0:
            self.faults.append("data came that was not granted")


def credit_of(body: bytes) -> tuple[int, int]:
    return int.from_bytes(body[:4], "big"), int.from_bytes(body[4:8], "big")
