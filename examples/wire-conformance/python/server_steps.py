"""The steps of a caller of the server under test."""

import asyncio
import re
import time

from bodies import Fault, HeaderLines, bytes_of
from case_run import ECHO, WITHIN_MS, CaseRun
from wire_call import WireCall

UNSAID_CREDIT = (1, 262_144)


async def call_of(run: CaseRun, name: str) -> WireCall:
    if name not in run.calls:
        run.calls[name] = WireCall(run.connection)
        await run.calls[name].listen()
    return run.calls[name]


async def open_call(run: CaseRun, name: str, step: dict) -> None:
    """Opens a call; a second time under the same name, with the same id."""
    is_known = name in run.calls and run.calls[name].granted.bytes > 0
    call = await call_of(run, name)
    headers = {"x-notes": await run.notes_of(name), **step.get("headers", {})}
    if not is_known:
        found = re.fullmatch(r"(\d+) (\d+)", headers.get("Rpc-Credit") or "")
        call.granted.add(*(map(int, found.groups()) if found else UNSAID_CREDIT))
    run.acted()
    subject = f"toolbus.rpc.{run.service}.{ECHO}.{step.get('method', run.case['method'])}"
    reply = call.inbox if step.get("reply", True) else ""
    await run.connection.publish(subject, bytes_of(step.get("body")), reply, headers=HeaderLines(headers))


async def cancel(run: CaseRun, name: str, _step) -> None:
    """Says to every instance that the call is canceled; the call need not be open yet."""
    call = await call_of(run, name)
    run.acted()
    await run.connection.publish(f"toolbus.rpc.{run.service}.cancel", call.inbox.encode())


async def note(run: CaseRun, name: str, step) -> None:
    step = {"says": step} if isinstance(step, str) else step
    notes = run.notes.get(name, [])
    await run.awaited(
        f'the note "{step["says"]}"', step, lambda: next((each for each in notes if each[1] == step["says"]), None)
    )


async def no_note(run: CaseRun, name: str, step: dict) -> None:
    """The note does not come, or not a second time when it has been seen."""

    def count() -> int:
        return sum(text == step["says"] for _at, text in run.notes.get(name, []))

    before = count()
    await run.quiet(step["for"], lambda: count() > before and f'the note "{step["says"]}" came')


async def serve(run: CaseRun, _name: str, step: dict) -> None:
    patience = {"patience_ms": step["patience"]} if "patience" in step else {}
    await run.command({"do": "serve", "service": run.service, **patience})


async def stop(run: CaseRun, _name: str, _step) -> None:
    run.acted()
    await run.command({"do": "stop", "service": run.service})


async def gone(run: CaseRun, _name: str, _step) -> None:
    """Asks until nats-server says that nobody takes openings any more."""
    until = time.monotonic() + WITHIN_MS / 1000
    while time.monotonic() < until:
        inbox = run.connection.new_inbox()
        subscription = await run.connection.subscribe(inbox)
        await run.connection.publish(f"toolbus.rpc.{run.service}.{ECHO}.Unary", b"", inbox)
        answer = await subscription.next_msg(timeout=WITHIN_MS / 1000)
        await subscription.unsubscribe()
        if (answer.headers or {}).get("Status") == "503":
            return
        await asyncio.sleep(0.02)
    raise Fault("openings are still taken")


SERVER_STEPS = {
    "open": open_call,
    "cancel": cancel,
    "note": note,
    "no_note": no_note,
    "serve": serve,
    "stop": stop,
    "gone": gone,
}
