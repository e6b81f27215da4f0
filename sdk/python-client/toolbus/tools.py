"""Functions of this program that a model may call."""

import asyncio
import inspect
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, overload

from pydantic import TypeAdapter, validate_call
from pydantic_core import to_jsonable_python

from toolbus.connection import random_name
from toolbus.errors import ToolbusError

# What the contract says of a call that somebody else has answered, or that nobody waits for: an answer comes too late.
_OVER = {
    "CALL_ALREADY_RESOLVED",
    "CALL_EXPIRED",
    "CALL_NOT_AWAITED",
    "CALL_NOT_FOUND",
    "CALL_TAKEN",
    "RUN_ENDED",
    "SESSION_CLOSED",
}


@dataclass(frozen=True)
class Tool:
    """`run` takes the arguments by name, and gives the result, which goes to the model as JSON.

    What it raises is told to the model."""

    name: str
    description: str
    input_schema: dict[str, Any] | None
    run: Callable[..., Any]


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(*, name: str | None = None, description: str | None = None) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None, /, *, name: str | None = None, description: str | None = None
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Makes a tool of a function: its name, its docstring and its annotations are what the model is told.

    Arguments are checked by the annotations."""
    if function is None:
        return lambda given: _tool_of(given, name, description)
    return _tool_of(function, name, description)


def _tool_of(function: Callable[..., Any], name: str | None, description: str | None) -> Tool:
    schema = TypeAdapter(function).json_schema()
    text = description if description is not None else inspect.getdoc(function) or ""
    return Tool(name or function.__name__, text, schema, validate_call(function))


def outcome_of(run: Callable[..., Any] | None, arguments_json: str) -> dict[str, str]:
    """Runs it, and gives what is to be answered, as a field of a submission."""
    try:
        if run is None:
            raise LookupError("this program has no such tool")
        result = run(**json.loads(arguments_json or "{}"))
        if inspect.iscoroutine(result):
            result = asyncio.run(result)
        return {"result_json": json.dumps(result, allow_nan=False, default=to_jsonable_python)}
    except BaseException as error:  # whatever it is, the model is told: it ends a thread, and no program
        return {"error": _words_of(error) or type(error).__name__}


def _words_of(error: BaseException) -> str:
    try:
        return str(error).encode(errors="replace").decode()
    except Exception:  # the program's own classes say what they are themselves
        return ""


def in_thread(work: Callable[..., None], *arguments: Any) -> None:
    """One of its own, since calls may wait for each other; the program ends after it."""
    threading.Thread(target=work, args=arguments, name="toolbus-call", daemon=False).start()


def schema_json(given: Tool) -> str:
    return json.dumps(given.input_schema) if given.input_schema is not None else ""


# What the contract says of an outcome that no call takes, such as a result that is too large.
_UNFIT = {"INVALID_REQUEST", "MESSAGE_TOO_LARGE", "RESULT_INVALID"}


def answer_call(outcome: dict[str, str], submit: Callable[[dict[str, str]], object]) -> None:
    """Answers a call. A call whose result is refused waits on: it is given the refusal as its error.

    One that is over takes no answer, and that is no fault."""

    def send(given: dict[str, str]) -> object:
        return submit({**given, "submission_id": random_name()})

    def answer() -> object:
        try:
            return send(outcome)
        except ToolbusError as error:
            if error.reason not in _UNFIT:
                raise
            return send({"error": str(error)})

    answer_unless_over(answer)


def answer_unless_over(answer: Callable[[], object]) -> None:
    """Answers a call; one that is over takes no answer, and that is no fault."""
    try:
        answer()
    except ToolbusError as error:
        if error.reason not in _OVER:
            raise
