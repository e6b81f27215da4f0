"""What passes between a worker and its pool."""

import json
import os
import unittest

from worker_process import Worker


class Protocol(unittest.TestCase):
    def test_it_tells_what_it_offers_and_answers_by_id(self):
        with Worker("def f(a): return a\ndef _g(): ...\nfrom os.path import join\n") as worker:
            ready = worker.read()
            self.assertEqual((ready["ready"], ready["functions"], ready["pid"]), (True, ["f"], worker.process.pid))
            worker.send(id=7, function="f", kwargs={"a": "ä\u2028\U0001f600"})
            self.assertEqual(worker.read(), {"id": 7, "result": "ä\u2028\U0001f600", "error": None})
            self.assertIn("no function _g", worker.call("_g")["error"])

    def test_a_tool_that_calls_worker_main_works_either_way(self):
        text = 'from toolbus_sdk import worker_main\ndef f(): return 1\nif __name__ == "__main__":\n    worker_main()\n'
        for by_itself in (True, False):
            with Worker(text, by_itself=by_itself) as worker:
                self.assertEqual(worker.read()["functions"], ["f"])
                self.assertEqual(worker.call("f")["result"], 1)

    def test_errors_are_texts_and_end_nothing(self):
        text = """
        import sys
        class Odd(Exception):
            def __str__(self): raise RuntimeError
        def bad(): raise ValueError("bad")
        def leave(): sys.exit(3)
        def odd(): raise Odd
        def key(): return {}["k"]
        async def later(): raise LookupError("later")
        """
        with Worker(text) as worker:
            worker.read()
            errors = [worker.call(name)["error"] for name in ("bad", "leave", "odd", "key", "later")]
            odd = "Odd: its text cannot be made"
            self.assertEqual(errors, ["ValueError: bad", "SystemExit: 3", odd, "KeyError: 'k'", "LookupError: later"])
            self.assertIn("raise ValueError", "".join(worker.logs()))

    def test_a_number_that_python_does_not_read_fails_its_call_only(self):
        with Worker("import time\ndef wait(): time.sleep(0.2)\ndef f(a): return a\n") as worker:
            worker.read()
            worker.send(id=1, function="wait", kwargs={})
            worker.process.stdin.write(b'{"id":2,"function":"f","kwargs":{"a":%b}}\n' % (b"9" * 5_000))
            worker.process.stdin.flush()
            told = "ValueError: Python does not read an integer of 5000 digits"
            self.assertEqual(worker.read(), {"id": 2, "result": None, "error": told})
            self.assertEqual(worker.read(), {"id": 1, "result": None, "error": None})
            self.assertEqual(worker.call("f", a=10**4_000)["result"], 10**4_000)

    def test_results_that_are_no_json_fail_their_call_only(self):
        text = """
        def one(): return {1}
        def two(): return float("nan")
        def three():
            a = []
            a.append(a)
            return a
        def four(): return {"a": (1, None)}
        """
        with Worker(text) as worker:
            worker.read()
            for name in ("one", "two", "three"):
                self.assertIn("the result is not JSON", worker.call(name)["error"])
            self.assertEqual(worker.call("four")["result"], {"a": [1, None]})

    def test_whatever_a_result_raises_when_it_is_written_is_the_error_of_its_call(self):
        text = """
        class Odd(dict):
            def items(self): raise AttributeError("detached")
        def odd(): return Odd(a=1)
        async def later(): return Odd(a=1)
        def good(): return 1
        """
        with Worker(text, "--threads=1") as worker:
            worker.read()
            told = "the result is not JSON: AttributeError: detached"
            self.assertEqual([worker.call(name)["error"] for name in ("odd", "later", "odd")], [told] * 3)
            self.assertEqual(worker.call("good")["result"], 1)

    def test_a_result_that_exits_when_it_is_written_is_the_error_of_its_call(self):
        text = """
        class Odd(dict):
            def items(self): raise SystemExit(3)
        def odd(): return Odd(a=1)
        async def later(): return Odd(a=1)
        """
        with Worker(text, "--threads=1") as worker:
            worker.read()
            told = "the result is not JSON: SystemExit: 3"
            self.assertEqual([worker.call(name)["error"] for name in ("odd", "later", "odd")], [told] * 3)

    def test_a_result_may_hold_what_an_argument_may(self):
        text = """
        import dataclasses, datetime, decimal, enum, pathlib, types, uuid
        class Mode(enum.Enum):
            FAST = "fast"
        @dataclasses.dataclass
        class Point:
            when: datetime.date
            mode: Mode
        class Model:
            def model_dump(self, mode): return {"mode": mode}
        class Serializer:
            def to_python(self, value, mode): return {"mode": mode}
        @dataclasses.dataclass
        class OfPydantic:
            token: str = "left out"
            __pydantic_serializer__ = Serializer()
        class Numbers:
            __module__ = "numpy"
            dtype = types.SimpleNamespace(kind="i")
            def tolist(self): return [1, 2]
        point = Point(datetime.date(2026, 1, 2), Mode.FAST)
        def f(): return [point, Model(), OfPydantic(), {"at": datetime.datetime(2026, 1, 2)}]
        async def g(): return [pathlib.Path("a/b"), uuid.UUID(int=1), decimal.Decimal("1.10"), datetime.time(10), Numbers()]
        def h(): return b"1"
        def i(): return Point
        """
        with Worker(text) as worker:
            worker.read()
            point = {"when": "2026-01-02", "mode": "fast"}
            self.assertEqual(worker.call("f")["result"], [point, *[{"mode": "json"}] * 2, {"at": "2026-01-02T00:00:00"}])
            others = ["a/b", "00000000-0000-0000-0000-000000000001", "1.10", "10:00:00", [1, 2]]
            self.assertEqual(worker.call("g")["result"], others)
            told = "the result is not JSON: TypeError: Object of type %s is not JSON serializable"
            self.assertEqual([worker.call(name)["error"] for name in "hi"], [told % "bytes", told % "type"])

    def test_a_result_that_has_no_room_in_memory_is_the_error_of_its_call(self):
        with Worker("def f(a): return ['x' * 1_000] * a\n", "--threads=1", "--memory-bytes=400000000") as worker:
            worker.read()
            self.assertIn("MemoryError", worker.call("f", a=1_000_000)["error"])
            self.assertEqual(len(worker.call("f", a=2)["result"]), 2)

    def test_a_field_of_the_log_without_a_text_ends_no_call(self):
        text = """
        from toolbus_sdk import log
        class Odd:
            def __repr__(self): raise AttributeError("detached")
        def f():
            with log("step", odd=Odd()):
                return 1
        """
        with Worker(text, "--threads=1") as worker:
            worker.read()
            self.assertEqual([worker.call("f")["result"] for _ in range(2)], [1, 1])

    def test_large_lines_go_both_ways_up_to_the_limit(self):
        with Worker("def f(a): return a * 2\n", "--max-line-bytes=3000000") as worker:
            worker.read()
            self.assertEqual(len(worker.call("f", a="x" * 1_000_000)["result"]), 2_000_000)
            self.assertIn("over the limit of 3000000", worker.call("f", a="x" * 2_000_000)["error"])
            self.assertEqual(worker.call("f", a="y")["result"], "yy")

    def test_errors_and_progress_keep_to_the_limit_too(self):
        text = """
        from toolbus_sdk import progress
        def f(a):
            progress(1, 2, "x" * a)
            raise ValueError("y" * a)
        """
        with Worker(text, "--max-line-bytes=1000000") as worker:
            worker.read()
            self.assertEqual(len(worker.call("f", a=1_500)["progress"]["message"]), 1_500)
            self.assertEqual(len(worker.read()["error"]), len("ValueError: ") + 1_500)
            self.assertLess(len(json.dumps(worker.call("f", a=900_001))), 1_000_000)
            self.assertEqual(len(worker.read()["error"]), len("ValueError: ") + 900_001)
            self.assertLess(len(json.dumps(worker.call("f", a=2_000_000))), 1_000_000)
            self.assertIn("characters left out", worker.read()["error"])

    def test_a_file_that_cannot_be_imported_ends_though_it_has_started_a_thread(self):
        text = "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()\nimport nothing_of_that_name\n"
        with Worker(text) as worker:
            self.assertIn("nothing_of_that_name", worker.read()["fatal"])
            self.assertEqual(worker.process.wait(timeout=5), 1)

    def test_a_file_that_cannot_be_imported_says_so(self):
        with Worker("import nothing_of_that_name\n") as worker:
            self.assertEqual(worker.read(), {"fatal": "ModuleNotFoundError: No module named 'nothing_of_that_name'"})
            self.assertIsNone(worker.read())

    def test_a_script_that_reads_its_arguments_when_it_is_imported_finds_its_own_name_alone(self):
        text = "import argparse, sys\nargparse.ArgumentParser().parse_args()\ndef f(): return sys.argv\n"
        with Worker(text, "--threads=1") as worker:
            worker.read()
            self.assertEqual(worker.call("f")["result"], [os.path.join(worker.directory.name, "tool.py")])

    def test_a_file_named_like_a_module_hides_nothing(self):
        with Worker("import json\ndef f(): return json.loads('[1]')\n", name="json.py") as worker:
            worker.read()
            self.assertEqual(worker.call("f")["result"], [1])

    def test_a_module_that_is_there_compiled_only_is_imported(self):
        text = """
        import os, py_compile
        source = os.path.join(os.path.dirname(__file__), "bare.py")
        with open(source, "w") as file:
            file.write("VALUE = 7")
        py_compile.compile(source, source + "c")
        os.remove(source)
        import bare
        def f():
            return bare.VALUE
        """
        with Worker(text) as worker:
            worker.read()
            self.assertEqual(worker.call("f")["result"], 7)

    def test_no_compiled_file_is_left_beside_the_tool_or_in_packages_there(self):
        text = """
        import os
        part = os.path.join(os.path.dirname(__file__), "part")
        os.mkdir(part)
        open(os.path.join(part, "__init__.py"), "w").close()
        import part as imported
        def f(): ...
        """
        with Worker(text) as worker:
            worker.read()
            self.assertEqual(sorted(os.listdir(worker.directory.name)), ["part", "tool.py"])
            self.assertEqual(os.listdir(os.path.join(worker.directory.name, "part")), ["__init__.py"])


class Prints(unittest.TestCase):
    def test_whatever_a_tool_prints_stays_out_of_the_protocol(self):
        text = """
        import os, subprocess, sys
        def f():
            print("printed")
            sys.stdout.write("no end")
            sys.stderr.write("to stderr\\n")
            os.write(1, b"raw\\n")
            subprocess.run(["sh", "-c", "echo child; cat"])
            if os.fork() == 0:
                os.write(1, b"fork\\n")
                os._exit(0)
            os.wait()
            os.system("echo system")
            return sys.stdin.read()
        """
        with Worker(text) as worker:
            worker.read()
            self.assertEqual(worker.call("f"), {"id": 1, "result": "", "error": None, "logs": 3})
            logs = worker.logs()
            self.assertEqual([line for line in logs if not line.startswith("{")], ["raw", "child", "fork", "system"])
            structured = [json.loads(line) for line in logs if line.startswith("{")]
            self.assertEqual([entry["message"] for entry in structured], ["printed", "to stderr", "no end"])
            self.assertEqual({entry["id"] for entry in structured}, {1})

    def test_a_tool_may_write_bytes_and_wrap_or_configure_the_stream_as_scripts_do(self):
        text = """
        import io, sys
        sys.stdout.reconfigure(encoding="utf-8", line_buffering=True)
        def f():
            sys.stdout.buffer.write(b"as bytes \\xff\\n")
            wrapped = io.TextIOWrapper(sys.stderr.buffer, encoding="utf-8")
            print("wrapped", file=wrapped)
            wrapped.close()
            print("still here")
            return 1
        """
        with Worker(text) as worker:
            self.assertEqual(worker.read()["functions"], ["f"])
            self.assertEqual([worker.call("f")["result"], worker.call("f")["result"]], [1, 1])
            told = [(line["message"], line["id"]) for line in map(json.loads, worker.logs())]
            self.assertEqual(told[:3], [("as bytes \\xff", 1), ("wrapped", 1), ("still here", 1)])

    def test_a_step_of_the_log_ends_with_its_time_and_gives_its_fields_to_the_lines_inside(self):
        text = """
        from toolbus_sdk import log
        def f():
            with log("fetch", url="u"):
                log.info("asks", n=1)
                with log("parse"):
                    log.info("inside")
            try:
                with log("fail"):
                    raise ValueError("bad")
            except ValueError:
                log.info("after")
        """
        with Worker(text) as worker:
            worker.read()
            worker.call("f")
            lines = [json.loads(line) for line in worker.logs()]
            seconds = [line.get("fields", {}).pop("seconds", None) for line in lines]
            found = [(line["level"], line["message"], line.get("fields", {})) for line in lines]
            expected = [
                ("info", "asks", {"url": "u", "n": 1}),
                ("info", "inside", {"url": "u"}),
                ("info", "parse", {"url": "u"}),
                ("info", "fetch", {"url": "u"}),
                ("error", "fail", {"raised": "ValueError"}),
                ("info", "after", {}),
            ]
            self.assertEqual(found, expected)
            self.assertEqual([second is not None for second in seconds], [False, False, True, True, True, False])

    def test_logs_are_lines_of_json_with_level_and_fields(self):
        text = """
        import logging
        from toolbus_sdk import log
        def f():
            log.debug("a")
            log.warning("b", n=1, odd={1})
            logging.getLogger("x").error("c %s", 2)
            log.info("y" * 100_000)
        """
        with Worker(text) as worker:
            worker.read()
            self.assertEqual(worker.call("f")["logs"], 4)
            debug, warning, error, long = [json.loads(line) for line in worker.logs()]
            self.assertEqual((debug["level"], debug["message"]), ("debug", "a"))
            self.assertEqual((warning["level"], warning["fields"]), ("warn", {"n": 1, "odd": "{1}"}))
            self.assertEqual((error["level"], error["message"], error["fields"]), ("error", "c 2", {"logger": "x"}))
            self.assertIn("92000 characters left out", long["message"])


class Context(unittest.TestCase):
    def test_config_and_secrets_belong_to_the_call(self):
        text = """
        from toolbus_sdk import get_config, get_secret, progress
        def f():
            progress(1, 2, "half")
            return [get_config("a.b"), get_config("a.l.1"), get_config("a.x", 9), get_secret("S")]
        async def g():
            return get_secret("S", "none")
        """
        with Worker(text) as worker:
            worker.read()
            worker.send(id=1, function="f", config={"a": {"b": 1, "l": [5, 6]}}, secrets={"S": "s1"})
            self.assertEqual(worker.read(), {"id": 1, "progress": {"done": 1.0, "total": 2.0, "message": "half"}})
            self.assertEqual(worker.read()["result"], [1, 6, 9, "s1"])
            self.assertEqual(worker.call("g")["result"], "none")
            self.assertIn('is not given the secret "S"', worker.call("f") and worker.read()["error"])

    def test_a_call_knows_the_key_by_which_it_is_one_with_its_repetition(self):
        text = """
        from toolbus_sdk import get_idempotency_key
        def f():
            return get_idempotency_key()
        """
        with Worker(text) as worker:
            worker.read()
            worker.send(id=1, function="f", idempotency_key="run_1_call_1")
            self.assertEqual(worker.read()["result"], "run_1_call_1")
            self.assertEqual(worker.call("f")["result"], "")


if __name__ == "__main__":
    unittest.main()
