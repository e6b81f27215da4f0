"""Calls that are canceled, and calls in flight together."""

import json
import os
import unittest

from worker_process import Worker


class Canceling(unittest.TestCase):
    TEXT = """
    import asyncio, time
    seen = []
    def spin():
        while True:
            pass
    def stubborn():
        try:
            while True:
                pass
        except Exception:
            seen.append("caught")
    async def sleep():
        try:
            await asyncio.sleep(60)
        finally:
            seen.append("cleaned")
    def quick(a): return [a, list(seen)]
    """

    def test_functions_and_coroutines_end_and_their_thread_is_used_again(self):
        with Worker(self.TEXT, "--threads=1") as worker:
            worker.read()
            for name in ("spin", "stubborn", "sleep"):
                worker.send(id=5, function=name)
                worker.send(cancel=5)
                self.assertEqual(worker.read(), {"id": 5, "result": None, "error": "the call was canceled"})
            self.assertEqual(worker.call("quick", a=1)["result"][0], 1)

    def test_an_interruption_never_reaches_the_next_call(self):
        with Worker(self.TEXT, "--threads=2") as worker:
            worker.read()
            for number in range(500):
                worker.send(id=2 * number, function="quick", kwargs={"a": number})
                worker.send(cancel=2 * number)
                worker.send(id=2 * number + 1, function="quick", kwargs={"a": number})
                frames = {frame["id"]: frame for frame in (worker.read(), worker.read())}
                self.assertEqual(frames[2 * number + 1]["result"], [number, []])
                self.assertIn(frames[2 * number]["error"], (None, "the call was canceled"))

    def test_progress_lines_stay_whole_when_their_call_is_canceled(self):
        text = """
        from toolbus_sdk import progress
        def f():
            while True:
                progress(1, 2, "x" * 3000)
        """
        with Worker(text, "--threads=1") as worker:
            worker.read()
            for number in range(50):
                worker.send(id=number, function="f")
                frame = worker.read()
                worker.send(cancel=number)
                while "progress" in frame:
                    frame = worker.read()
                self.assertEqual(frame, {"id": number, "result": None, "error": "the call was canceled"})


class Concurrency(unittest.TestCase):
    def test_many_calls_in_flight_never_mix(self):
        text = """
        import asyncio, random, time
        def f(a):
            print("noise", a)
            time.sleep(random.random() / 500)
            return a
        async def g(a):
            await asyncio.sleep(random.random() / 500)
            return a
        """
        with Worker(text, "--threads=8") as worker:
            worker.read()
            for number in range(1000):
                worker.send(id=number, function="fg"[number % 2], kwargs={"a": number})
            answers = [worker.read() for _ in range(1000)]
            self.assertEqual(sorted(answer["id"] for answer in answers), list(range(1000)))
            self.assertTrue(all(answer["result"] == answer["id"] for answer in answers))

    def test_a_coroutine_that_blocks_is_told_and_the_others_run_on(self):
        text = """
        import asyncio, threading, time
        go = threading.Event()
        async def block():
            return go.wait(15)
        async def quick(a):
            await asyncio.sleep(0.01)
            return a
        def release(): go.set()
        """
        with Worker(text) as worker:
            worker.read()
            worker.send(id=1, function="block")
            for number in range(2, 6):
                worker.send(id=number, function="quick", kwargs={"a": number})
            answers = [worker.read() for _ in range(4)]
            self.assertEqual(sorted(answer["id"] for answer in answers), [2, 3, 4, 5])
            self.assertTrue(all(answer["result"] == answer["id"] for answer in answers))
            worker.send(id=6, function="release")
            self.assertEqual(sorted(worker.read()["id"] for _ in range(2)), [1, 6])
            told = [json.loads(line) for line in worker.logs() if "held up the loop" in line]
            self.assertEqual([(line["id"], line["level"]) for line in told], [(1, "warn")])
            self.assertRegex(told[0]["fields"]["at"][0], r"tool\.py:5 in block$")

    def test_a_coroutine_that_stops_the_loop_or_leaves_it_by_a_task_ends_no_other_call(self):
        text = """
        import asyncio, sys
        async def wait():
            await asyncio.sleep(0.3)
            return "waited"
        async def stop(): asyncio.get_running_loop().stop()
        async def leave():
            asyncio.get_running_loop().call_soon(sys.exit, 3)
            await asyncio.sleep(0.1)
        """
        with Worker(text) as worker:
            worker.read()
            for name in ("stop", "leave"):
                worker.send(id=1, function="wait", kwargs={})
                worker.send(id=2, function=name, kwargs={})
                frames = [worker.read(), worker.read()]
                self.assertEqual(frames[0], {"id": 2, "result": None, "error": None})
                self.assertEqual(frames[1], {"id": 1, "result": "waited", "error": None})
            self.assertIn("SystemExit: 3", "".join(worker.logs()))

    def test_a_coroutine_behind_a_plain_decorator_is_awaited_and_the_next_one_too(self):
        text = """
        def plain(function): return lambda *args, **kwargs: function(*args, **kwargs)
        async def later(a): return a
        behind = plain(later)
        """
        with Worker(text) as worker:
            worker.read()
            self.assertEqual([worker.call(name, a=1)["result"] for name in ("behind", "later", "behind")], [1] * 3)

    def test_a_coroutine_that_was_moved_can_be_canceled(self):
        text = """
        import asyncio, threading
        go = threading.Event()
        async def block():
            return go.wait(15)
        async def sleep():
            await asyncio.sleep(60)
        """
        with Worker(text) as worker:
            worker.read()
            worker.send(id=1, function="block")
            worker.send(id=2, function="sleep")
            worker.send(cancel=2)
            self.assertEqual(worker.read(), {"id": 2, "result": None, "error": "the call was canceled"})

    def test_a_call_for_which_no_thread_can_be_started_fails_alone(self):
        text = """
        import os, threading, time
        start, most = threading.Thread.start, {"call-1"}
        def start_or_fail(thread):
            if thread.name not in most:
                raise RuntimeError("can't start new thread")
            start(thread)
        threading.Thread.start = start_or_fail
        def wait(path):
            while not os.path.exists(path):
                time.sleep(0.01)
            most.update({"call-2", "coroutines-watch", "coroutines-1"})
            return "whole"
        async def later(): return "later"
        def quick(): return 1
        """
        with Worker(text, "--threads=2") as worker:
            worker.read()
            path = os.path.join(worker.directory.name, "go on")
            worker.send(id=7, function="wait", kwargs={"path": path})
            told = "RuntimeError: can't start new thread"
            self.assertEqual([worker.call(name)["error"] for name in ("quick", "later")], [told] * 2)
            with open(path, "w"):
                self.assertEqual(worker.read()["result"], "whole")
            self.assertEqual([worker.call(name)["result"] for name in ("later", "quick")], ["later", 1])

    def test_a_memory_limit_is_an_error_of_the_call(self):
        with Worker("def f(n): return len(bytearray(n))\n", f"--memory-bytes={512 * 2**20}") as worker:
            worker.read()
            self.assertEqual(worker.call("f", n=1000)["result"], 1000)
            self.assertEqual(worker.call("f", n=2**30)["error"], "MemoryError")
            self.assertEqual(worker.call("f", n=1000)["result"], 1000)

    def test_a_forked_child_can_print_whoever_printed_meanwhile(self):
        text = """
import os, threading
def f():
    over = threading.Event()
    def chatter():
        while not over.is_set():
            print("x" * 4000)
    for _ in range(4):
        threading.Thread(target=chatter, daemon=True).start()
    children = []
    for _ in range(40):
        child = os.fork()
        if child == 0:
            print("in the child")
            os._exit(0)
        children.append(child)
    ends = [os.waitpid(child, 0)[1] for child in children]
    over.set()
    return ends
"""
        with Worker(text) as worker:
            worker.read()
            self.assertEqual(worker.call("f")["result"], [0] * 40)


if __name__ == "__main__":
    unittest.main()
