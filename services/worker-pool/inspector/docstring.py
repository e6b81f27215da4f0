"""Docstrings in the styles of Google, NumPy and Sphinx: what a function does, and what each parameter means."""

import re
from typing import NamedTuple


class Docstring(NamedTuple):
    description: str
    parameters: dict


PARAMETER_SECTION = re.compile(r"^(Args|Arguments|Parameters|Params|Keyword Args|Keyword Arguments|Other Parameters):?$")
OTHER_SECTION = re.compile(
    r"^(Returns?|Yields?|Raises|Examples?|Notes?|Warnings?|Warns|Attributes|References|See Also|Todo)(:|$)"
)
FIELD = re.compile(
    r"^:(?P<kind>param|parameter|arg|argument|key|keyword|type|returns?|rtype|raises?|except|exception|yields?)"
    r"(?P<words>[^:]*):\s*(?P<text>.*)$"
)
GOOGLE_ENTRY = re.compile(r"^\*{0,2}(?P<name>\w+)\s*(\([^)]*\))?\s*:\s*(?P<text>.*)$")
NUMPY_ENTRY = re.compile(r"^\*{0,2}(?P<names>\w+(\s*,\s*\w+)*)\s*(:.*)?$")
PARAMETER_FIELDS = {"param", "parameter", "arg", "argument", "key", "keyword"}


def docstring_from_text(text):
    """Reads a docstring whose indentation is cleaned."""
    description, parameters = [], {}
    lines = text.splitlines()
    index, in_description = 0, True
    while index < len(lines):
        line = lines[index]
        underlined = index + 1 < len(lines) and re.match(r"^-{3,}$", lines[index + 1].strip()) is not None
        field = FIELD.match(line)
        if PARAMETER_SECTION.match(line.strip()) and (underlined or line.rstrip().endswith(":")):
            in_description = False
            read = numpy_section if underlined else google_section
            index = read(lines, index + (2 if underlined else 1), parameters)
            continue
        if field:
            in_description = False
            index = sphinx_field(lines, index, field, parameters)
            continue
        if OTHER_SECTION.match(line.strip()) and (underlined or line.rstrip().endswith(":")):
            in_description = False
        if in_description:
            description.append(line.rstrip())
        index += 1
    return Docstring("\n".join(description).strip(), parameters)


def indent_of(line):
    return len(line) - len(line.lstrip())


def joined(parts):
    return " ".join(part for part in parts if part)


def google_section(lines, index, parameters):
    """Entries `name (type): text`, all deeper than the heading; what is deeper than an entry belongs to it."""
    name, entry_indent = None, None
    while index < len(lines):
        line = lines[index]
        if line.strip():
            if indent_of(line) == 0:
                break
            entry_indent = indent_of(line) if entry_indent is None else entry_indent
            entry = GOOGLE_ENTRY.match(line.strip()) if indent_of(line) <= entry_indent else None
            if entry:
                name = entry["name"]
                parameters[name] = entry["text"]
            elif name:
                parameters[name] = joined([parameters[name], line.strip()])
        index += 1
    return index


def numpy_section(lines, index, parameters):
    """Entries `name : type` at the margin, with their text indented below them."""
    names = []
    while index < len(lines):
        line = lines[index]
        if line.strip() and indent_of(line) == 0:
            underlined = index + 1 < len(lines) and re.match(r"^-{3,}$", lines[index + 1].strip())
            entry = NUMPY_ENTRY.match(line.strip())
            if underlined or not entry:
                break
            names = re.split(r"\s*,\s*", entry["names"])
            for name in names:
                parameters[name] = ""
        else:
            for name in names:
                parameters[name] = joined([parameters[name], line.strip()])
        index += 1
    return index


def sphinx_field(lines, index, field, parameters):
    """`:param type name: text`, and the indented lines below it."""
    text = [field["text"].strip()]
    index += 1
    while index < len(lines) and lines[index].strip() and indent_of(lines[index]) > 0:
        text.append(lines[index].strip())
        index += 1
    words = field["words"].split()
    if field["kind"] in PARAMETER_FIELDS and words:
        parameters[words[-1].lstrip("*")] = joined(text)
    return index
