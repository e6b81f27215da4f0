"""Arguments in the form that the hints of a function want."""

import dataclasses
import datetime
import decimal
import enum
import pathlib
import typing
import unittest

from toolbus_sdk.arguments import bound_arguments


class Mode(enum.Enum):
    FAST = "fast"


@dataclasses.dataclass
class Point:
    x: int
    when: typing.Optional[datetime.date] = None


class FieldInfo:
    """What `Field(…)` of pydantic gives."""

    def __init__(self, default=..., default_factory=None):
        self.default = default
        self.default_factory = default_factory


class Arguments(unittest.TestCase):
    def bound(self, function, **kwargs):
        positional, named = bound_arguments(function, kwargs)
        return function(*positional, **named)

    def test_the_default_that_a_field_names(self):
        def function(count: int, size=FieldInfo(3), tags=FieldInfo(default_factory=list), *, name=FieldInfo()):  # noqa: B008 - as people write it
            return count, size, tags, name

        self.assertEqual(self.bound(function, count=1, name="a"), (1, 3, [], "a"))
        self.assertEqual(self.bound(function, count=1, name="a", size=2, tags=["b"]), (1, 2, ["b"], "a"))
        with self.assertRaisesRegex(TypeError, "missing a required argument: 'name'"):
            self.bound(function, count=1)

        def by_position(size=FieldInfo(3), /, count=FieldInfo(4)):  # noqa: B008
            return size, count

        self.assertEqual(self.bound(by_position, count=1), (3, 1))

    def test_a_whole_number_that_is_written_as_a_fraction(self):
        def function(count: int, most: typing.Optional[int], size: float, either: typing.Union[int, float]):
            return [type(value).__name__ for value in (count, most, size, either)]

        self.assertEqual(self.bound(function, count=3.0, most=2.0, size=1.0, either=1.0), ["int", "int", "float", "float"])

    def test_what_json_does_not_have(self):
        def function(
            point: Point,
            points: typing.List[Point],
            mode: typing.Union[None, Mode],
            path: pathlib.Path,
            unique: typing.Set[int],
            pair: typing.Tuple[int, Mode],
            by_name: typing.Dict[str, Point],
            sums: typing.List[decimal.Decimal],
            at: datetime.time,
        ):
            return point, points, mode, path, unique, pair, by_name, sums, at

        day = datetime.date(2026, 1, 2)
        found = self.bound(
            function,
            point={"x": 1, "when": "2026-01-02"},
            points=[{"x": 2}],
            mode="fast",
            path="a/b",
            unique=[1, 1],
            pair=[1, "fast"],
            by_name={"a": {"x": 3}},
            sums=["1.10", 1.1, 1],
            at="10:30",
        )
        expected = (Point(1, day), [Point(2)], Mode.FAST, pathlib.Path("a/b"), {1}, (1, Mode.FAST), {"a": Point(3)})
        self.assertEqual(found[:7], expected)
        self.assertEqual(list(map(str, found[7])), ["1.10", "1.1", "1"])
        self.assertEqual(found[8], datetime.time(10, 30))

    def test_plain_values_stay_what_they_are(self):
        def function(a: typing.Union[int, str], b: typing.Literal["x"], c: dict, d=None, *, e: float = 0.0, **rest):
            return a, b, c, d, e, rest

        self.assertEqual(
            self.bound(function, a="1", b="x", c={"k": 1}, d=[1], e=2, f=3), ("1", "x", {"k": 1}, [1], 2, {"f": 3})
        )

    def test_missing_and_unknown_arguments_are_type_errors(self):
        def function(a: int):
            return a

        with self.assertRaisesRegex(TypeError, "missing a required argument: 'a'"):
            self.bound(function)
        with self.assertRaisesRegex(TypeError, "unexpected keyword argument 'b'"):
            self.bound(function, a=1, b=2)

    def test_hints_that_cannot_be_evaluated_convert_nothing_and_hinder_no_other(self):
        def function(a: "Nowhere", point: "Point"):  # noqa: F821
            return a, point

        self.assertEqual(self.bound(function, a={"x": 1}, point={"x": 1}), ({"x": 1}, Point(1)))

    def test_hints_of_a_base_stand_where_one_cannot_be_evaluated(self):
        @dataclasses.dataclass
        class Named(Point):
            name: "Nowhere" = ""  # noqa: F821

        def function(named: Named):
            return named

        day = datetime.date(2026, 1, 2)
        self.assertEqual(self.bound(function, named={"x": 1, "when": "2026-01-02"}), Named(1, day))


if __name__ == "__main__":
    unittest.main()
