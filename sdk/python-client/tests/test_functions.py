"""What a function does that fails, and what is made of it."""

import asyncio
import os
import queue
import sys
import threading
import unittest
from datetime import date
from typing import Any

from pydantic import BaseModel
from suite import Suite
from toolbus import Tool, ToolbusError
from toolbus.caller.v1 import caller_pb2
from toolbus.run.v1 import run_service_pb2 as runs


def raising(error: BaseException) -> Any:
    def run() -> None:
        raise error

    return run


class Functions(unittest.TestCase):
    def answer_of(self, run: Any, *, takes_results: bool = True) -> runs.ToolOutput:
        with Suite() as suite:
            suite.takes_results = takes_results
            toolbus = suite.toolbus(patience_s=1.0)
            given = toolbus.run("clerk", "hello", functions=[Tool("find_order", "", None, run)])
            reading = threading.Thread(target=given.result, daemon=True)
            reading.start()
            reading.join(5)
            self.assertFalse(reading.is_alive(), "the call was answered")
            return suite.outputs[0]

    def test_an_error_of_bytes_that_are_no_text_is_told(self) -> None:
        output = self.answer_of(raising(FileNotFoundError(os.fsdecode(b"no file \xff"))))
        self.assertEqual(output.error, "no file ?")

    def test_a_function_that_ends_its_program_has_failed(self) -> None:
        self.assertEqual(self.answer_of(lambda: sys.exit("no such order")).error, "no such order")

    def test_a_function_whose_task_was_canceled_has_failed(self) -> None:
        self.assertEqual(self.answer_of(raising(asyncio.CancelledError())).error, "CancelledError")

    def test_an_error_that_cannot_say_what_it_is_is_told_by_its_name(self) -> None:
        class Broken(Exception):
            def __str__(self) -> str:
                raise AttributeError("response")

        self.assertEqual(self.answer_of(raising(Broken())).error, "Broken")

    def test_a_result_that_is_refused_is_told_as_an_error(self) -> None:
        self.assertEqual(self.answer_of(lambda: "x" * 10, takes_results=False).error, "too large")

    def test_a_coroutine_is_awaited(self) -> None:
        async def find() -> str:
            await asyncio.sleep(0)
            return "here"

        self.assertEqual(self.answer_of(find).result_json, '"here"')

    def test_what_arguments_may_be_a_result_may_be(self) -> None:
        class Order(BaseModel):
            placed: date

        self.assertEqual(self.answer_of(lambda: [Order(placed=date(2026, 1, 2))]).result_json, '[{"placed": "2026-01-02"}]')

    def test_a_number_that_JSON_does_not_have_is_an_error(self) -> None:
        self.assertIn("JSON", self.answer_of(lambda: float("nan")).error)

    def test_tools_that_are_offered_later_are_executed_whichever_stream_their_request_comes_by(self) -> None:
        with Suite() as suite:
            requests = suite.requests = queue.Queue()
            session = suite.toolbus(patience_s=1.0).open_session("clerk")
            session.offer("desk", [Tool("greet", "", None, lambda: "greet")])
            session.offer("desk", [Tool("find", "", None, lambda: "find")])
            requests.put(caller_pb2.CallerToolRequest(request_id="r", tool="find"))
            self.assertEqual(suite.responses.get(timeout=10).result_json, '"find"')

    def test_a_request_that_another_stream_takes_over_while_it_is_executed_is_not_executed_again(self) -> None:
        begun: queue.Queue[int] = queue.Queue()
        ending = threading.Event()

        def greet() -> None:
            begun.put(1)
            ending.wait(10)

        with Suite() as suite:
            requests = suite.requests = queue.Queue()
            session = suite.toolbus(patience_s=1.0).open_session("clerk")
            first = session.offer("desk", [Tool("greet", "", None, greet)])
            requests.put(caller_pb2.CallerToolRequest(request_id="r", tool="greet"))
            begun.get(timeout=10)
            requests = suite.requests
            session.offer("desk", [Tool("greet", "", None, greet), Tool("find", "", None, lambda: "find")])
            first.close()
            requests.put(caller_pb2.CallerToolRequest(request_id="r", tool="greet"))
            requests.put(caller_pb2.CallerToolRequest(request_id="s", tool="find"))
            self.assertEqual(suite.responses.get(timeout=10).request_id, "s")
            ending.set()
            self.assertEqual(suite.responses.get(timeout=10).request_id, "r")
            self.assertTrue(begun.empty(), "it was executed once")

    def test_however_many_functions_wait_for_each_other_all_are_called(self) -> None:
        with Suite() as suite:
            suite.calls = 100
            meeting = threading.Barrier(suite.calls)
            run = suite.toolbus().run("clerk", "hello", functions=[Tool("find_order", "", None, meeting.wait)])
            reading = threading.Thread(target=run.result, daemon=True)
            reading.start()
            reading.join(10)
            meeting.abort()
            self.assertFalse(reading.is_alive(), "all were answered")

    def test_an_answer_that_cannot_be_given_ends_every_reading(self) -> None:
        with Suite() as suite:
            suite.refusal = "too large"
            run = suite.toolbus(patience_s=1.0).run("clerk", "hello", functions=[Tool("find_order", "", None, lambda: 1)])
            faults: list[str] = []

            def read() -> None:
                try:
                    run.result()
                except ToolbusError as error:
                    faults.append(str(error))

            for count in (1, 2):
                reading = threading.Thread(target=read, daemon=True)
                reading.start()
                reading.join(5)
                self.assertEqual(faults, ["too large"] * count)
