"""Whole files (WORK-1)."""

import os
import tempfile
import unittest

from tool_file import read_tool_file

FUNCTION = b"def f(): ...\n"


class ToolFiles(unittest.TestCase):
    def read(self, content):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "tool.py")
            with open(path, "wb") as file:
                file.write(content)
            return read_tool_file(path)

    def test_metadata_and_functions(self):
        found = self.read(b'# /// script\n# requires-python = ">=3.9"\n# dependencies = [\n#   "a",\n# ]\n# ///\n' + FUNCTION)
        self.assertEqual(found["dependencies"], ["a"])
        self.assertEqual([function["name"] for function in found["functions"]], ["f"])

    def test_line_ends_of_windows(self):
        found = self.read(b'# /// script\r\n# dependencies = ["a"]\r\n# ///\r\n' + FUNCTION)
        self.assertEqual(found["dependencies"], ["a"])

    def test_what_only_some_take_for_a_line_end(self):
        text = '# /// script\n# # a note\u2028#dependencies = ["b"]\n# dependencies = ["a"]\n# ///\n'
        found = self.read(text.encode() + FUNCTION)
        self.assertEqual(found.get("dependencies"), ["a"], found.get("refused"))

    def test_an_empty_block(self):
        self.assertNotIn("refused", self.read(b"# /// script\n# ///\n" + FUNCTION))

    def test_LOOP_14_effects(self):
        table = b'# /// script\n# [tool.toolbus.effects]\n# f = "pure"\n# ///\ndef g(): ...\n'
        found = self.read(table + FUNCTION)
        self.assertEqual([function.get("effect") for function in found["functions"]], [None, "pure"])

    def test_refusals_say_why(self):
        block = b"# /// script\n%b\n# ///\n" + FUNCTION
        for content, reason in {
            FUNCTION: "# /// script\n# dependencies = []\n# ///",
            block % b"# dependencies = [": "malformed PEP 723 metadata: ",
            block % b'# dependencies = "a"': "`dependencies` must be a list of strings",
            block % b"# requires-python = 3": "`requires-python` must be a string",
            b"# /// script\n# dependencies = []\n" + FUNCTION: "an end `# ///`",
            (block % b"# dependencies = []") * 2: "more than one",
            block % b"# dependencies = []" + b"def g(:\n": "line 5: ",
            b"# /// script\n# dependencies = []\n# ///\nx = 1\n": "offers no function",
            b"\xff": "not UTF-8",
            b"\xef\xbb\xbf" + block % b"# dependencies = []": "a byte order mark",
            b'"""\n# /// script\n"""\n' + block % b"# dependencies = []": "an end `# ///`",
            b"# see # /// script\n" + block % b"# dependencies = []": "the first `# /// script` of the file must be a line",
            block % b'# dependencies = ["a b"]': "uv says: TOML parse error at line 1, column 17",
            block % b'# requires-python = "three"': "uv says: TOML parse error",
            block % b"# [tool.uv]\n# nonsense = 3": "unknown field `nonsense`",
            block % b"# dependencies = []" + b"\0": "null bytes",
            block % b'# [tool.toolbus.effects]\n# g = "pure"': "of functions of the file (f)",
            block % b'# [tool.toolbus.effects]\n# f = "safe"': "whether they are pure, idempotent, at_most_once",
            block % b'# [tool.toolbus.effect]\n# f = "pure"': "`tool.toolbus` has `effects` alone",
        }.items():
            with self.subTest(reason):
                self.assertIn(reason, self.read(content).get("refused", "it is not refused"))

    def test_a_file_that_cannot_be_parsed_for_its_depth(self):
        found = self.read(b"# /// script\n# dependencies = []\n# ///\n" + FUNCTION + b"x = " + b"(" * 5000 + b")" * 5000)
        self.assertIn("refused", found)

    def test_nothing_is_run(self):
        found = self.read(b"# /// script\n# dependencies = []\n# ///\nraise SystemExit('run')\n" + FUNCTION)
        self.assertNotIn("refused", found)


if __name__ == "__main__":
    unittest.main()
