"""Arguments as type hints want them, and results as JSON has them, which has no dataclass, date, path, set or enumeration."""

import contextlib
import copy
import dataclasses
import datetime
import decimal
import enum
import functools
import inspect
import pathlib
import sys
import types
import typing
import uuid

READERS = {
    datetime.datetime: lambda text: datetime.datetime.fromisoformat(text.replace("Z", "+00:00")),
    datetime.date: datetime.date.fromisoformat,
    datetime.time: datetime.time.fromisoformat,
    decimal.Decimal: lambda number: decimal.Decimal(str(number)),
    uuid.UUID: uuid.UUID,
    pathlib.Path: pathlib.Path,
    pathlib.PurePath: pathlib.PurePath,
}


def bound_arguments(function, kwargs):
    """Positional and keyword arguments. Raises TypeError, like a call does, for what is missing or not known."""
    signature, hints, fields = shape_of(function)
    left = {name: default_of_field(name, field) for name, field in fields.items() if name not in kwargs}
    kwargs = left | {name: value_from_hint(hints.get(name), value) for name, value in kwargs.items()}
    positional = [
        kwargs.pop(name)
        for name, parameter in signature.parameters.items()
        if parameter.kind is parameter.POSITIONAL_ONLY and name in kwargs
    ]
    signature.bind(*positional, **kwargs)
    return positional, kwargs


@functools.lru_cache(maxsize=None)
def shape_of(function):
    signature = inspect.signature(function)
    defaults = {name: parameter.default for name, parameter in signature.parameters.items()}
    fields = {name: default for name, default in defaults.items() if type(default).__name__ == "FieldInfo"}
    return signature, hints_of(function), fields


def default_of_field(name, field):
    """That of `Field(…)` of pydantic, which is no value itself."""
    if field.default_factory is not None:
        return field.default_factory()
    if field.default is ... or type(field.default).__name__ == "PydanticUndefinedType":
        raise TypeError(f"missing a required argument: {name!r}")
    return copy.deepcopy(field.default)


@functools.lru_cache(maxsize=None)
def hints_of(owner):
    """A hint that cannot be evaluated, as of what is imported for type checkers alone, converts nothing."""
    with contextlib.suppress(Exception):
        return typing.get_type_hints(owner)
    hints = {}
    for part in reversed(inspect.getmro(owner)) if isinstance(owner, type) else [inspect.unwrap(owner)]:
        written = {}
        with contextlib.suppress(Exception):  # what is not written as text Python 3.14 evaluates here
            written = part.__annotations__
        for name, hint in written.items():
            hints.pop(name, None)
            one = types.SimpleNamespace(__annotations__={name: hint})
            with contextlib.suppress(Exception):
                hints.update(typing.get_type_hints(one, vars(sys.modules[part.__module__])))
    return hints


def value_from_hint(hint, value):
    """The value in the form that the hint names; as it is where the hint says nothing about its form."""
    origin = typing.get_origin(hint)
    if origin is not None:
        return value_from_generic(origin, typing.get_args(hint), value)
    if not isinstance(hint, type):
        return value
    if isinstance(value, dict):
        return value_from_record(hint, value)
    if hint is int and isinstance(value, float) and value.is_integer():
        return int(value)  # 3.0 is an integer to JSON Schema
    if isinstance(value, list) and hint in (set, frozenset, tuple):
        return hint(value)
    if issubclass(hint, enum.Enum):
        return value if isinstance(value, hint) else hint(value)
    return READERS[hint](value) if hint in READERS and isinstance(value, (str, int, float)) else value


def value_from_generic(origin, arguments, value):
    if origin is typing.Union or getattr(origin, "__name__", "") == "UnionType":
        return value_from_union(arguments, value)
    if origin is getattr(typing, "Annotated", None):
        return value_from_hint(arguments[0], value)
    if isinstance(value, list) and origin is tuple:
        inner = arguments[0] if len(arguments) == 2 and arguments[1] is ... else None
        hints = [inner] * len(value) if inner else arguments
        return tuple(value_from_hint(hint, item) for hint, item in zip(hints, value))
    if isinstance(value, list) and arguments:
        items = [value_from_hint(arguments[0], item) for item in value]
        return origin(items) if origin in (set, frozenset) else items
    if isinstance(value, dict) and len(arguments) == 2:
        return {key: value_from_hint(arguments[1], item) for key, item in value.items()}
    return value


def value_from_union(members, value):
    """The first member that accepts the value; null and plain values stay what they are."""
    if value is None or any(type(value) is member for member in members):
        return value
    for member in members:
        try:
            converted = value_from_hint(member, value)
        except Exception:
            continue  # this member does not accept it; the next one may
        if converted is not value:
            return converted
    return value


def value_from_record(hint, value):
    if dataclasses.is_dataclass(hint):
        hints = hints_of(hint)
        return hint(**{name: value_from_hint(hints.get(name), item) for name, item in value.items()})
    validate = getattr(hint, "model_validate", None)
    return validate(value) if callable(validate) else value


def json_from_value(value):
    """What a result says in JSON, which has no such value. A set is none: it has no order."""
    if isinstance(value, type):
        raise TypeError("Object of type type is not JSON serializable")
    if callable(getattr(value, "model_dump", None)):
        return value.model_dump(mode="json")
    if hasattr(value, "__pydantic_serializer__"):  # a dataclass of pydantic, which may leave fields out
        return value.__pydantic_serializer__.to_python(value, mode="json")
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (uuid.UUID, pathlib.PurePath, decimal.Decimal)):
        return str(value)
    if type(value).__module__ == "numpy" and hasattr(value, "tolist") and value.dtype.kind != "m":  # a time without its unit
        return (value.astype(str) if value.dtype.kind == "M" else value).tolist()
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")
