"""The steps that drive the client under test, and those that look at what it does."""

import re

from bodies import Fault, check_body, check_headers, told_as
from case_run import CaseRun
from wire_call import WireCall

UNSAID_CREDIT = (1, 262_144)


async def start(run: CaseRun, name: str, step: dict) -> None:
    events = await run.events_of(name)
    command = {
        "do": "call",
        "id": run.id_of(name),
        "events": events,
        "service": run.service,
        "method": step.get("method", run.case["method"]),
        "requests": step.get("requests", []),
        "open": step.get("open", False),
        "metadata": step.get("metadata", {}),
    }
    if "timeout" in step:
        command["timeout_ms"] = step["timeout"]
    if "reads" in step:
        command["reads"] = step["reads"]
    run.acted()
    await run.command(command)


async def request(run: CaseRun, name: str, body: dict) -> None:
    run.acted()
    await run.command({"do": "request", "id": run.id_of(name), "body": body})


def telling(deed: str):
    async def tell(run: CaseRun, name: str, _step) -> None:
        run.acted()
        await run.command({"do": deed, "id": run.id_of(name)})

    return tell


async def opening(run: CaseRun, name: str, step: dict) -> None:
    """Takes the next opening as the call of this name."""
    message = await run.awaited("the opening", step, lambda: run.openings.pop(0) if run.openings else None)
    if not message.reply:
        raise Fault("the opening has no reply subject")
    if any(call.peer == message.reply for call in run.calls.values()):
        raise Fault("the opening has the id of another call")
    call = run.calls[name] = WireCall(run.connection, message.reply)
    await call.listen()
    await run.connection.flush()
    found = re.fullmatch(r"(\d+) (\d+)", (message.headers or {}).get("Rpc-Credit", ""))
    call.credit.add(*(map(int, found.groups()) if found else UNSAID_CREDIT))
    check_body(step.get("body"), message.data)
    if not re.fullmatch(r"[\w-]{1,32} \d{1,15}", (message.headers or {}).get("Rpc-Sent", "")):
        raise Fault("the opening does not say when it was sent")
    check_headers({"Rpc-Expires": {"now": 3000}, **step.get("headers", {})}, message.headers)
    run.acted()


async def no_opening(run: CaseRun, _name: str, for_ms: int) -> None:
    await run.quiet(for_ms, lambda: run.openings and "an opening came")


async def canceled(run: CaseRun, name: str, step) -> None:
    """The call's id comes at the cancel subject."""
    wanted = run.call(name).peer
    bounds = step if isinstance(step, dict) else {}
    await run.awaited("the cancel", bounds, lambda: next((each for each in run.cancels if each[1] == wanted), None))


async def outcome(run: CaseRun, name: str, step: dict) -> None:
    found = await run.awaited("the outcome", step, lambda: next(iter(run.outcomes.get(name, [])), None))
    error = found["error"] or {}
    came = {"code": error.get("code"), "delivery": error.get("delivery"), "details": error.get("details")}
    if "code" not in step and error:
        raise Fault(f"the call failed: {error}")
    for key in ("code", "delivery", "details"):
        if key in step and step[key] != came[key]:
            raise Fault(f"{key} is {came[key]} and not {step[key]}: {error}")
    if "messages" in step and [told_as(each) for each in step["messages"]] != found["messages"]:
        raise Fault(f"the messages are {found['messages']} and not {step['messages']}")
    if step.get("says", "") not in error.get("message", ""):
        raise Fault(f'"{error.get("message")}" says no "{step["says"]}"')
    for key, entries in (("metadata", error.get("metadata", {})), ("header", found["header"]), ("trailer", found["trailer"])):
        if wrong := {each: value for each, value in step.get(key, {}).items() if entries.get(each) != value}:
            raise Fault(f"{key} {wrong} is not among {entries}")


CLIENT_STEPS = {
    "start": start,
    "request": request,
    "end_requests": telling("end"),
    "read": telling("read"),
    "abort": telling("abort"),
    "opening": opening,
    "no_opening": no_opening,
    "canceled": canceled,
    "outcome": outcome,
}
