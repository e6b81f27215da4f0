"""Streams that are left, and those whose connection is cut."""

import queue
import threading
import unittest

from suite import Cable, Suite
from toolbus import Tool, ToolbusError
from toolbus.streams import KeptStream


class Streams(unittest.TestCase):
    def test_a_watch_that_is_closed_as_soon_as_it_is_opened_ends(self) -> None:
        with Suite() as suite:
            toolbus = suite.toolbus()
            for _ in range(20):
                watch = toolbus.watch({"stock_level": lambda: 7})
                closing = threading.Thread(target=watch.close, daemon=True)
                closing.start()
                closing.join(5)
                self.assertFalse(closing.is_alive(), "it ended")

    def test_tools_that_cannot_be_offered_are_an_error(self) -> None:
        with Suite() as suite, self.assertRaisesRegex(ToolbusError, "no more streams"):
            suite.toolbus().open_session("clerk").offer("desk", [Tool("find_order", "", None, lambda: 1)])

    def test_a_watch_ends_with_what_its_program_raises_and_is_left(self) -> None:
        def refuse(problem: str) -> None:
            raise ValueError(problem)

        with Suite() as suite:
            watch = suite.toolbus().watch({"stock_level": lambda: 7}, on_notice=refuse)
            with self.assertRaisesRegex(ValueError, "there is no such tool"):
                watch.wait()
            self.assertTrue(suite.left.wait(5), "no call comes to who does not listen")

    def test_a_watch_can_be_closed_by_what_it_calls(self) -> None:
        with Suite() as suite:
            opened: queue.Queue[KeptStream] = queue.Queue()
            watch = suite.toolbus().watch({"stock_level": lambda: 7}, on_notice=lambda _: opened.get().close())
            opened.put(watch)
            watch.wait()
            self.assertTrue(suite.left.wait(5), "no call comes to who does not listen")

    def test_a_run_may_end_for_a_reason_of_a_later_release(self) -> None:
        with Suite() as suite:
            suite.end_reason = 999
            suite.answered.set()
            self.assertEqual(suite.toolbus().run("clerk", "hello").result().end_reason, "999")

    def test_a_run_is_read_on_when_the_cable_was_cut(self) -> None:
        with Suite() as suite, Cable(suite.port) as cable:
            run = suite.toolbus(cable.port).run("clerk", "hello")
            reading = threading.Thread(target=run.result, daemon=True)
            reading.start()
            self.assertTrue(suite.watched.wait(5))
            cable.cut()
            suite.answered.set()
            reading.join(20)
            self.assertFalse(reading.is_alive(), "it went on over another connection")
