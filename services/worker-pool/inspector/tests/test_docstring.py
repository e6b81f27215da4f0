"""Descriptions from docstrings (WORK-2)."""

import inspect
import unittest

from docstring import docstring_from_text

GOOGLE = """Sums up.

    It adds
    numbers.

    Args:
        a (int): The first: of two,
            on two lines.
        *rest: More.

    Returns:
        int: The sum.

    Example:
        a: not a parameter
    """

NUMPY = """Sums up.

    Parameters
    ----------
    a : int
        The first.
    b, c
        The others,
        on two lines.

    Returns
    -------
    int
    """

SPHINX = """Sums up, see :func:`add`.

    :param int a: The first,
        on two lines.
    :param b: The second.
    :type b: int
    :returns: the sum
    """


class Docstrings(unittest.TestCase):
    def read(self, text):
        return docstring_from_text(inspect.cleandoc(text))

    def test_google(self):
        docstring = self.read(GOOGLE)
        self.assertEqual(docstring.description, "Sums up.\n\nIt adds\nnumbers.")
        self.assertEqual(docstring.parameters, {"a": "The first: of two, on two lines.", "rest": "More."})

    def test_numpy(self):
        docstring = self.read(NUMPY)
        self.assertEqual(docstring.description, "Sums up.")
        self.assertEqual(
            docstring.parameters,
            {"a": "The first.", "b": "The others, on two lines.", "c": "The others, on two lines."},
        )

    def test_sphinx(self):
        docstring = self.read(SPHINX)
        self.assertEqual(docstring.description, "Sums up, see :func:`add`.")
        self.assertEqual(docstring.parameters, {"a": "The first, on two lines.", "b": "The second."})

    def test_none_and_one_line(self):
        self.assertEqual(self.read("").description, "")
        self.assertEqual(self.read("Does it.").description, "Does it.")


if __name__ == "__main__":
    unittest.main()
