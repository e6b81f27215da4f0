"""What functions offer, from their text alone (WORK-2)."""

import ast
import unittest

from functions import functions_from_module
from refusal import Refusal

HEAD = """
import typing as t, enum
from typing import Annotated, Any, Literal, Optional, TypedDict, Union
from dataclasses import dataclass, field
import dataclasses

Color = Literal["red", "blue"]

class Mode(enum.Enum):
    FAST = "fast"
    SLOW = "slow"

@dataclass
class Point:
    x: int
    y: float = 0.5
    tags: list[str] = field(default_factory=list)

@dataclasses.dataclass(frozen=True)
class Named(Point):
    name: str = ""

class Filter(TypedDict, total=False):
    text: t.Required[str]
    limit: int

class Order(pydantic.BaseModel):
    name: str = Field(description="whose", pattern="^[a-z]+$", min_length=1)
    count: int = pydantic.Field(2, ge=1)
    note: Optional[str] = Field(default=None, max_length=5)
    tags: list[str] = Field(default_factory=list, max_length=3)
    when: Annotated[dates.date, Field(description="the day")] = Field(...)
    total: Decimal = Field(..., ge=Decimal(0), alias="theTotal")
    other: int = Field(validation_alias=AliasChoices("another", "others"))
    size: Annotated[float, Field(multiple_of=0.01, default=3)]
    free: int = Field(**OPTIONS)

class ByName(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    total: int = Field(alias="theTotal")

@dataclass
class Job:
    id: int = field(metadata={"unit": "none"})
    _: dataclasses.KW_ONLY
    steps: list = field(default_factory=list)
    done: bool = field(init=False)

class Node(TypedDict):
    value: int
    next: "Optional[Node]"
"""


def functions_of(text):
    return {function["name"]: function for function in functions_from_module(ast.parse(HEAD + text))}


def schema_of(hint):
    """The schema of a parameter with that type hint."""
    return functions_of(f"def f(a: {hint}): ...")["f"]["inputSchema"]["properties"]["a"]


STRING, INTEGER, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}
NULL = {"type": "null"}
DECIMAL = {"anyOf": [NUMBER, {**STRING, "pattern": r"^[+-]?(\d+(\.\d*)?|\.\d+)$"}]}
POINT = {
    "type": "object",
    "properties": {"x": INTEGER, "y": {**NUMBER, "default": 0.5}, "tags": {"type": "array", "items": STRING}},
    "required": ["x"],
}

TABLE = {
    "str": STRING,
    "int": INTEGER,
    "float": NUMBER,
    "bool": {"type": "boolean"},
    "None": NULL,
    "Any": {},
    "list": {"type": "array"},
    "dict": {"type": "object"},
    "list[int]": {"type": "array", "items": INTEGER},
    "t.List[str]": {"type": "array", "items": STRING},
    "t.Sequence[t.List[int]]": {"type": "array", "items": {"type": "array", "items": INTEGER}},
    "set[int]": {"type": "array", "items": INTEGER, "uniqueItems": True},
    "tuple[int, ...]": {"type": "array", "items": INTEGER},
    "tuple[int, str]": {"type": "array", "prefixItems": [INTEGER, STRING], "minItems": 2, "maxItems": 2},
    "dict[str, int]": {"type": "object", "additionalProperties": INTEGER},
    "dict[str, Any]": {"type": "object"},
    "Optional[int]": {"anyOf": [INTEGER, NULL]},
    "int | None": {"anyOf": [INTEGER, NULL]},
    "Union[int, str]": {"anyOf": [INTEGER, STRING]},
    "Union[int, Optional[str]]": {"anyOf": [INTEGER, STRING, NULL]},
    "int | Any": {},
    'Literal["a", "b"]': {"type": "string", "enum": ["a", "b"]},
    "Literal[1, 'b', None]": {"enum": [1, "b", None]},
    "Literal[True]": {"type": "boolean", "enum": [True]},
    "Color": {"type": "string", "enum": ["red", "blue"]},
    "Mode": {"type": "string", "enum": ["fast", "slow"]},
    '"Point"': POINT,
    "list[Point]": {"type": "array", "items": POINT},
    "Named": {**POINT, "properties": {**POINT["properties"], "name": {**STRING, "default": ""}}},
    "Filter": {"type": "object", "properties": {"text": STRING, "limit": INTEGER}, "required": ["text"]},
    "Node": {"type": "object", "properties": {"value": INTEGER, "next": {}}, "required": ["value", "next"]},
    'Annotated[int, "how many"]': {**INTEGER, "description": "how many"},
    'Annotated[int, Field(description="how many")]': {**INTEGER, "description": "how many"},
    'Annotated[int, Field(ge=1, lt=9), "how many"]': {
        **{**INTEGER, "description": "how many"},
        **{"minimum": 1, "exclusiveMaximum": 9},
    },
    "Order": {
        "type": "object",
        "properties": {
            "name": {**STRING, "description": "whose", "minLength": 1},
            "count": {**INTEGER, "minimum": 1, "default": 2},
            "note": {"anyOf": [STRING, {"type": "null"}], "maxLength": 5, "default": None},
            "tags": {"type": "array", "items": STRING, "maxItems": 3},
            "when": {"type": "string", "format": "date", "description": "the day"},
            "theTotal": DECIMAL,
            "another": INTEGER,
            "size": {**NUMBER, "default": 3},
            "free": INTEGER,
        },
        "required": ["name", "when", "theTotal", "another"],
    },
    "ByName": {"type": "object", "properties": {"total": INTEGER}, "required": ["total"]},
    "Job": {"type": "object", "properties": {"id": INTEGER, "steps": {"type": "array"}}, "required": ["id"]},
    "datetime.date": {"type": "string", "format": "date"},
    "datetime.time": STRING,
    "pathlib.Path": STRING,
    "numpy.ndarray": {},
    "Callable[[int], str]": {},
    "'not valid ('": {},
}


class Hints(unittest.TestCase):
    def test_each_hint_has_its_schema(self):
        for hint, schema in TABLE.items():
            with self.subTest(hint):
                self.assertEqual(schema_of(hint), schema)


class Signatures(unittest.TestCase):
    def schema(self, text):
        return functions_of(text)["f"]["inputSchema"]

    def test_what_has_no_default_is_required(self):
        schema = self.schema("def f(a, b: int, c: int = 3, *, d: str, e: str = 'x'): ...")
        self.assertEqual(schema["required"], ["a", "b", "d"])
        self.assertEqual(schema["properties"]["c"], {"type": "integer", "default": 3})
        self.assertEqual(schema["properties"]["e"], {"type": "string", "default": "x"})
        self.assertIs(schema["additionalProperties"], False)

    def test_a_default_of_none_allows_null(self):
        self.assertEqual(
            self.schema("def f(a: int = None): ...")["properties"]["a"],
            {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
        )

    def test_a_default_that_is_computed_is_left_out(self):
        schema = self.schema("def f(a: int = compute(), b: float = float('nan')): ...")
        self.assertEqual(schema["properties"], {"a": {"type": "integer"}, "b": {"type": "number"}})
        self.assertNotIn("required", schema)

    def test_further_keywords_are_allowed_where_the_function_takes_them(self):
        self.assertIs(self.schema("def f(a, *rest, **more): ...")["additionalProperties"], True)

    def test_coroutines_are_functions(self):
        self.assertIn("f", functions_of("async def f(): ..."))


class Names(unittest.TestCase):
    def test_only_top_level_functions_without_underscore(self):
        text = "def f(): ...\ndef _g(): ...\nclass C:\n    def h(self): ...\nif x:\n    def i(): ..."
        self.assertEqual(list(functions_of(text)), ["f"])

    def test_all_narrows(self):
        text = "def f(): ...\ndef g(): ...\ndef h(): ...\n__all__ = ['f']\n__all__ += ('g', 'nothing')"
        self.assertEqual(list(functions_of(text)), ["f", "g"])

    def test_a_computed_all_is_refused(self):
        with self.assertRaisesRegex(Refusal, "__all__"):
            functions_of("__all__ = [name for name in names]\ndef f(): ...")

    def test_work_11_what_field_says_as_the_default_of_an_argument(self):
        text = """
def f(
    count: int = Field(..., description="how many", ge=1),
    name: str = Field(min_length=2),
    size: float = Field(1.5, lt=9),
    note: str = Field(None, description="what else", max_length=9),
    tags: list[str] = Field(default_factory=list),
):
    pass
"""
        [function] = functions_from_module(ast.parse(HEAD + text))
        schema = function["inputSchema"]
        self.assertEqual(schema["required"], ["count", "name"])
        expected = {
            "count": {**INTEGER, "description": "how many", "minimum": 1},
            "name": {"type": "string", "minLength": 2},
            "size": {"type": "number", "exclusiveMaximum": 9, "default": 1.5},
            "note": {
                "anyOf": [{"type": "string", "maxLength": 9}, {"type": "null"}],
                "description": "what else",
                "default": None,
            },
            "tags": {"type": "array", "items": {"type": "string"}},
        }
        self.assertEqual(schema["properties"], expected)


if __name__ == "__main__":
    unittest.main()
