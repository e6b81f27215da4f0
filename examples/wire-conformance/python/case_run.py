"""One run of a case: the calls that it has open, the commands that it gives to the subject under test, and what came back."""

import asyncio
import itertools
import json
import os
import time
from contextlib import suppress

from bodies import Fault
from wire_call import Arrival, WireCall

ECHO = "toolbus.echo.v1.EchoService"
WITHIN_MS = 8000
runs = itertools.count()


class NotRun(Exception):
    """The case needs a subject under test that takes commands."""


class CaseRun:
    def __init__(self, connection, case: dict, control: str | None, service: str):
        self.connection, self.case, self.control = connection, case, control
        self.prefix = f"python-{os.getpid()}-{next(runs)}"
        self.service = self.prefix if case["side"] == "client" or case["alone"] else service
        self.calls: dict[str, WireCall] = {}
        self.openings: list = []
        self.cancels: list[tuple[float, str]] = []
        self.notes: dict[str, list[tuple[float, str]]] = {}
        self.outcomes: dict[str, list[tuple[float, dict]]] = {}
        self._subscriptions: list = []
        self._served: set[str] = set()
        self.acted()

    async def begin(self) -> None:
        """Listens where a server would, for a client under test."""
        if self.case["side"] == "client" and not self.case["alone"]:
            await self._listen(f"toolbus.rpc.{self.service}.{ECHO}.*", self.openings, lambda message: message)
            await self._listen(f"toolbus.rpc.{self.service}.cancel", self.cancels, lambda message: message.data.decode())
        await self.connection.flush()

    async def serve_all(self) -> None:
        """Has the service served that all cases share."""
        await self.command({"do": "serve", "service": self.service})

    def acted(self) -> None:
        self.acted_at = time.monotonic()

    def call(self, name: str) -> WireCall:
        if name not in self.calls:
            raise Fault(f'the case has no call "{name}"')
        return self.calls[name]

    async def notes_of(self, name: str) -> str:
        """Where the service under test notes what becomes of a call."""
        subject = f"{self.prefix}.notes.{name}"
        if name not in self.notes:
            self.notes[name] = []
            await self._listen(subject, self.notes[name], lambda message: message.data.decode())
            await self.connection.flush()
        return subject

    async def events_of(self, name: str) -> str:
        """Where the outcome of a call of the client under test comes."""
        self.outcomes[name] = []
        inbox = self.connection.new_inbox()
        await self._listen(inbox, self.outcomes[name], lambda message: json.loads(message.data))
        await self.connection.flush()
        return inbox

    def id_of(self, name: str) -> str:
        return f"{self.prefix}-{name}"

    async def command(self, command: dict) -> None:
        if self.control is None:
            raise NotRun(f'nobody is there to be told "{command["do"]}"')
        reply = await self.connection.request(self.control, json.dumps(command).encode(), timeout=5)
        answer = json.loads(reply.data)
        if "error" in answer:
            raise Fault(f'the subject under test refuses "{command["do"]}": {answer["error"]}')
        if command["do"] == "serve":
            self._served.add(command["service"])
        if command["do"] == "stop":
            self._served.discard(command["service"])

    async def awaited(self, what: str, bounds: dict, find):
        """Waits for what `find` gives, which is its time and itself, and judges the time."""
        within = bounds.get("within", WITHIN_MS)
        while (found := find()) is None:
            self.assert_no_faults()
            if (time.monotonic() - self.acted_at) * 1000 > within:
                raise Fault(f"{what} did not come within {within} ms")
            await asyncio.sleep(0.005)
        self.assert_no_faults()
        took = (found[0] - self.acted_at) * 1000
        if ("within" in bounds and took > within) or ("after" in bounds and took < bounds["after"]):
            raise Fault(f"{what} came after {took:.0f} ms: {bounds}")
        return found[1]

    def next_arrival(self, call: WireCall, kind: int | None = None) -> tuple[float, Arrival] | None:
        """The next arrival that is no heartbeat or credit, or is of the kind that is asked for."""
        while call.arrivals:
            arrival = call.arrivals.pop(0)
            if arrival.kind == kind or not arrival.is_passed_over:
                return arrival.at, arrival
        return None

    async def quiet(self, for_ms: int, find) -> None:
        """Fails when `find` gives something within the time."""
        until = time.monotonic() + for_ms / 1000
        while time.monotonic() < until:
            self.assert_no_faults()
            if found := find():
                raise Fault(f"{found} where nothing was to come")
            await asyncio.sleep(0.005)

    def assert_no_faults(self) -> None:
        for call in self.calls.values():
            if call.faults:
                raise Fault("; ".join(call.faults))

    async def end(self) -> None:
        for name, call in self.calls.items():
            if self.case["side"] == "server":
                await self.connection.publish(f"toolbus.rpc.{self.service}.cancel", call.inbox.encode())
            elif not self.outcomes.get(name, [True]):
                with suppress(Fault):  # it may have ended meanwhile
                    await self.command({"do": "abort", "id": self.id_of(name)})
            await call.leave()
        for service in list(self._served):
            await self.command({"do": "stop", "service": service})
        for subscription in self._subscriptions:
            await subscription.unsubscribe()

    async def _listen(self, subject: str, into: list, read) -> None:
        async def arrived(message) -> None:
            into.append((time.monotonic(), read(message)))

        self._subscriptions.append(await self.connection.subscribe(subject, cb=arrived))
