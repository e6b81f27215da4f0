"""The steps that send and receive frames, for both sides."""

from bodies import Fault, bytes_of, check_body, check_headers
from case_run import CaseRun
from client_steps import CLIENT_STEPS
from server_steps import SERVER_STEPS
from wire_call import END, FLAGS, KINDS, MORE, WireCall

LARGEST_PART, SMALLEST_PART = 65_536, 16_384


def kind_of(name) -> int:
    return name if isinstance(name, int) else KINDS[name]


def flags_of(flags) -> int:
    bits = 0
    for flag in flags or []:
        bits |= flag if isinstance(flag, int) else FLAGS[flag]
    return bits


async def has_peer(run: CaseRun, call: WireCall) -> None:
    await run.awaited("the inbox of the other side", {}, lambda: (run.acted_at, True) if call.peer else None)


async def send(run: CaseRun, name: str, step: dict) -> None:
    call = run.call(name)
    await has_peer(run, call)
    run.acted()
    call.skip(step.get("skip", 0))
    if "bytes" in step:
        await call.publish(bytes.fromhex(step["bytes"]))
        return
    body, headers = bytes_of(step.get("body")), step.get("headers")
    await call.send(kind_of(step["frame"]), flags_of(step.get("flags")), body, headers, step.get("reply"))


async def receive(run: CaseRun, name: str, step: dict) -> None:
    call, kind = run.call(name), kind_of(step["frame"])
    arrival = await run.awaited(f"the {step['frame']} frame", step, lambda: run.next_arrival(call, kind))
    if arrival.status is not None or arrival.kind != kind:
        raise Fault(f"status {arrival.status}, kind {arrival.kind} came, with {arrival.body[:120]!r}")
    if "flags" in step and flags_of(step["flags"]) != arrival.flags:
        raise Fault(f"its flags are {arrival.flags}")
    if "size" in step and step["size"] != len(arrival.body):
        raise Fault(f"its body has {len(arrival.body)} bytes")
    if "inbox" in step and step["inbox"] != arrival.says_inbox:
        raise Fault("it carries an inbox" if arrival.says_inbox else "it carries no inbox")
    check_body(step.get("body"), arrival.body)
    check_headers(step.get("headers"), arrival.headers)


async def receive_status(run: CaseRun, name: str, step: dict) -> None:
    call = run.call(name)
    arrival = await run.awaited(f"status {step['status']}", step, lambda: run.next_arrival(call))
    if arrival.status != str(step["status"]):
        raise Fault(f"a frame of kind {arrival.kind} came")


async def receive_message(run: CaseRun, name: str, step: dict) -> None:
    """A message in as many parts as it comes in; grants what is missing, if it is to."""
    call, whole, came, has_more = run.call(name), bytes_of(step["body"]), b"", True
    while has_more:
        part = await run.awaited("a part", {}, lambda: run.next_arrival(call))
        has_more = bool(part.flags & MORE)
        if part.status is not None or part.kind != KINDS["data"]:
            raise Fault(f"a frame of kind {part.kind} came in the middle of a message")
        if has_more and len(part.body) < SMALLEST_PART:
            raise Fault(f"a part of {len(part.body)} bytes came, of a message that goes on")
        came += part.body
        run.acted()
        missing = len(whole) - len(came) - call.granted.bytes
        if has_more and step.get("grants") and missing > 0:
            await call.send(KINDS["credit"], 0, bytes_of({"credit": [0, missing]}))
    if "end" in step and step["end"] != bool(part.flags & END):
        raise Fault(f"the last part has flags {part.flags}")
    check_body(step["body"], came)


async def send_message(run: CaseRun, name: str, step: dict) -> None:
    """A message in parts, as the peer's credit allows."""
    call, message, offset, is_first = run.call(name), bytes_of(step["body"]), step.get("from", 0), True
    await has_peer(run, call)
    while is_first or offset < len(message):
        wanted = min(len(message) - offset, LARGEST_PART)
        least = min(wanted, SMALLEST_PART)

        def credited(least=least, is_first=is_first):
            is_enough = call.credit.bytes >= least and (not is_first or call.credit.messages > 0)
            return (run.acted_at, True) if is_enough else None

        await run.awaited("credit", {}, credited)
        size = min(wanted, call.credit.bytes)
        call.credit.add(-1 if is_first else 0, -size)
        has_more = offset + size < len(message)
        flags = MORE if has_more else END if step.get("end") else 0
        await call.send(KINDS["data"], flags, message[offset : offset + size])
        offset, is_first = offset + size, False
        run.acted()


async def nothing(run: CaseRun, name: str, for_ms: int) -> None:
    call = run.call(name)

    def find():
        frames = [each for each in call.arrivals if each.status is None and not each.is_passed_over]
        return frames and f"a frame of kind {frames[0].kind} came"

    await run.quiet(for_ms, find)


async def no_credit(run: CaseRun, name: str, for_ms: int) -> None:
    call = run.call(name)
    call.arrivals.clear()
    await run.quiet(for_ms, lambda: any(each.kind == KINDS["credit"] for each in call.arrivals) and "credit came")


async def mute(run: CaseRun, name: str, _step) -> None:
    run.call(name).is_mute = True
    run.acted()


async def leave(run: CaseRun, name: str, _step) -> None:
    await run.call(name).leave()
    run.acted()


STEPS = {
    **SERVER_STEPS,
    **CLIENT_STEPS,
    "send": send,
    "receive": receive,
    "receive_status": receive_status,
    "receive_message": receive_message,
    "send_message": send_message,
    "nothing": nothing,
    "no_credit": no_credit,
    "mute": mute,
    "leave": leave,
}


async def do_step(run: CaseRun, verb: str, name: str, step) -> None:
    if verb not in STEPS:
        raise Fault(f'this runner knows no verb "{verb}"')
    await STEPS[verb](run, name, step)
