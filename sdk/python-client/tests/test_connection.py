"""What is said of where the suite is, and of who asks."""

import unittest

from suite import Suite
from toolbus import Toolbus


class Connections(unittest.TestCase):
    def test_an_address_without_a_scheme_is_refused_at_once(self) -> None:
        for url in ("127.0.0.1:7480", "localhost:7480", "http://", "ftp://127.0.0.1"):
            with self.subTest(url), self.assertRaisesRegex(ValueError, "like http://"):
                Toolbus(url)

    def test_a_key_that_ends_its_line_is_sent_without_its_end(self) -> None:
        with Suite() as suite:
            run = Toolbus(f"http://127.0.0.1:{suite.port}", api_key="key\n", patience_s=1.0).run("clerk", "hello")
            self.assertEqual((run.id, suite.key), ("run", "Bearer key"))
