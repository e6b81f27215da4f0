"""Plays the cases with the library for Python: `python runner.py cases.yaml`, the suite's address in TOOLBUS_URL and a key in
TOOLBUS_API_KEY."""

import sys
import threading
import time
import traceback
from collections import Counter

import yaml
from toolbus import RunError, Tool, Toolbus, ToolbusError


def functions_of(given, names):
    called = Counter()

    def tool_of(name):
        one = given[name]

        def run(**arguments):
            called[name] += 1
            time.sleep(one.get("takesMs", 0) / 1_000)
            if "error" in one:
                raise RuntimeError(one["error"])
            return {**arguments, **one.get("returns", {})}

        return Tool(name, one.get("description", ""), one.get("input"), run)

    return [tool_of(name) for name in names], called


def seen_of(run):
    result = run.result()
    outputs = [item.function_call_output.result for item in result.run.items if item.HasField("function_call_output")]
    errors = [output.output_json for output in outputs if output.is_error]
    return {
        "state": result.state,
        "endReason": result.end_reason,
        "text": result.text,
        "error": errors[0] if errors else None,
    }


def play_run(toolbus, play, tools):
    options = {"functions": tools, "idempotency_key": play.get("idempotencyKey")}
    runs = [toolbus.run(play["agent"], play["input"], **options) for _ in range(play.get("times", 1))]
    return {**seen_of(runs[0]), "runs": len({run.id for run in runs})}


def play_updates(toolbus, play, tools):
    events = [
        update.event
        for update in toolbus.run(play["agent"], play["input"], instructions=play["instructions"])
        if update.WhichOneof("update") == "event"
    ]
    return {
        "first": events[0].WhichOneof("event"),
        "last": events[-1].WhichOneof("event"),
        "isWhole": [event.sequence for event in events] == list(range(len(events))),
        "instructions": events[0].accepted.options.instructions,
    }


def play_text(toolbus, play, tools):
    text = ""
    for piece in toolbus.run(play["agent"], play["input"]).text():
        text = piece.text if piece.replaces else text + piece.text
    return {"text": text}


def play_take_up(toolbus, play, tools):
    run = toolbus.run(play["agent"], play["input"], functions=tools)  # nobody looks at it, so nothing is called
    return seen_of(toolbus.take_up(run.id, functions=tools))


def play_cancel(toolbus, play, tools):
    run = toolbus.run(play["agent"], play["input"], functions=tools)
    run.cancel("not wanted any more")
    return seen_of(run)


def play_offer(toolbus, play, tools):
    with toolbus.open_session(play["agent"]) as session, session.offer(play["callerId"], tools) as attachment:
        for _ in range(play.get("times", 1)):
            seen = seen_of(session.run(play["input"]))
        return {**seen, "names": attachment.names}


def play_watch(toolbus, play, tools):
    with toolbus.watch({one.name: one.run for one in tools}):
        return seen_of(toolbus.run(play["agent"], play["input"]))


def play_space(toolbus, play, tools):
    space = toolbus.open_space(play["id"] + "-python")
    heard = []

    def hear():
        for event in space.watch(from_sequence=0):
            if event.WhichOneof("event") == "message_posted":
                heard.extend(part.text for part in event.message_posted.text.content)
            if len(heard) >= len(play["say"]):
                return

    hearing = threading.Thread(target=hear)
    hearing.start()
    for words in play["say"]:
        space.send(words)
        time.sleep(0.2)
    hearing.join(30)
    return {"heard": heard}


PLAYS = {
    "run": play_run,
    "updates": play_updates,
    "text": play_text,
    "takeUp": play_take_up,
    "cancel": play_cancel,
    "offer": play_offer,
    "watch": play_watch,
    "space": play_space,
}


def is_as(field, seen, wanted):
    """Errors have a message that names what is wrong: the words that are expected stand in it."""
    if field in ("message", "error") and isinstance(wanted, str):
        return wanted in str(seen)
    return seen == wanted


def fault_of(toolbus, functions, case):
    kind = next(name for name in case if name in PLAYS)
    tools, called = functions_of(functions, case[kind].get("functions", []))
    try:
        seen = PLAYS[kind](toolbus, case[kind], tools)
    except ToolbusError as error:
        seen = {"code": error.code, "reason": error.reason, "message": str(error)}
        if isinstance(error, RunError):
            seen["state"] = error.state
    seen["called"] = dict(called)
    wrong = [
        f"{field} is {seen.get(field)!r}, not {wanted!r}"
        for field, wanted in case["expect"].items()
        if not is_as(field, seen.get(field), wanted)
    ]
    return "; ".join(wrong)


def main(path):
    with open(path, encoding="utf-8") as file:
        given = yaml.safe_load(file)
    toolbus = Toolbus()
    is_well = True
    for case in given["cases"]:
        try:
            fault = fault_of(toolbus, given["functions"], case)
        except Exception:
            fault = traceback.format_exc()
        print(f"FAIL {case['name']}: {fault}" if fault else f"ok {case['name']}", flush=True)
        is_well = is_well and not fault
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
