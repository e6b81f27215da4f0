"""Calls of other tools, as the pool hears and answers them."""

import os
import unittest

from worker_process import Worker

TOOL = """
    from toolbus_sdk import CallCanceled, ToolError, call_tool

    def twice(text):
        return call_tool("echo", text=text) + call_tool("echo", text=text)

    async def both():
        import asyncio
        return await asyncio.gather(call_tool("one"), call_tool("two"))

    async def many(number):
        import asyncio
        return sum(await asyncio.gather(*(call_tool("n", n=n) for n in range(number))))

    def careful():
        try:
            return call_tool("bad")
        except ToolError as error:
            return f"told: {error}"

    def canceled():
        return call_tool("slow")
"""


class CallToolTest(unittest.TestCase):
    def test_a_function_in_a_thread_waits_for_each_result(self):
        with Worker(TOOL) as worker:
            worker.read()
            worker.send(id=1, function="twice", kwargs={"text": "a"})
            for ask in (1, 2):
                self.assertEqual(worker.read(), {"id": 1, "ask": ask, "arguments": {"text": "a"}, "tool": "echo"})
                worker.send(reply=ask, result="a", error=None)
            self.assertEqual(worker.read()["result"], "aa")

    def test_a_coroutine_asks_several_at_a_time_and_gets_each_its_own(self):
        with Worker(TOOL) as worker:
            worker.read()
            worker.send(id=1, function="both", kwargs={})
            asks = {frame["tool"]: frame["ask"] for frame in (worker.read(), worker.read())}
            worker.send(reply=asks["two"], result=2, error=None)
            worker.send(reply=asks["one"], result=2**70, error=None)
            self.assertEqual(worker.read()["result"], [2**70, 2])

    def test_of_many_asks_a_few_are_under_way_and_each_reply_brings_the_next(self):
        with Worker(TOOL) as worker:
            worker.read()
            worker.send(id=1, function="many", kwargs={"number": 2_000})
            open_asks = [worker.read() for _ in range(16)]
            for answered in range(2_000):
                ask = open_asks.pop(0)
                worker.send(reply=ask["ask"], result=ask["arguments"]["n"], error=None)
                if answered < 1_984:
                    open_asks.append(worker.read())
            self.assertEqual(worker.read()["result"], 1_999_000)

    def test_where_no_thread_is_to_be_had_what_waits_for_one_gets_that_of_the_call(self):
        text = """
        import os, threading, time
        from toolbus_sdk import call_tool
        def start_or_fail(thread):
            raise RuntimeError("can't start new thread")
        def ask(path):
            threading.Thread.start = start_or_fail
            while not os.path.exists(path):
                time.sleep(0.01)
            return call_tool("echo")
        def quick(): return "quick"
        """
        with Worker(text, "--threads=1") as worker:
            worker.read()
            path = os.path.join(worker.directory.name, "go on")
            worker.send(id=1, function="ask", kwargs={"path": path})
            worker.send(id=2, function="quick")
            worker.send(id=3, function="nothing")
            self.assertEqual(worker.read()["id"], 3)  # so the one before it waits for the thread
            with open(path, "w"):
                worker.send(reply=worker.read()["ask"], result="a", error=None)
            self.assertEqual([worker.read()["result"] for _ in range(2)], ["a", "quick"])

    def test_an_error_is_raised_and_can_be_caught(self):
        with Worker(TOOL) as worker:
            worker.read()
            worker.send(id=1, function="careful", kwargs={})
            worker.send(reply=worker.read()["ask"], result=None, error="no such tool")
            self.assertEqual(worker.read()["result"], "told: no such tool")

    def test_a_cancel_ends_the_waiting_and_a_late_reply_is_nobodys(self):
        with Worker(TOOL) as worker:
            worker.read()
            worker.send(id=1, function="canceled", kwargs={})
            ask = worker.read()["ask"]
            worker.send(cancel=1)
            self.assertEqual(worker.read()["error"], "the call was canceled")
            worker.send(reply=ask, result=1, error=None)
            worker.send(id=2, function="careful", kwargs={})
            worker.send(reply=worker.read()["ask"], result="fine", error=None)
            self.assertEqual(worker.read()["result"], "fine")


if __name__ == "__main__":
    unittest.main()
