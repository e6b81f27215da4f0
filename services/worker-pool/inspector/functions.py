"""The functions that a module offers, with the JSON Schema of their arguments."""

import ast
from types import SimpleNamespace

from docstring import docstring_from_text
from refusal import Refusal
from schema import Annotations, is_field, literal_from_node, or_null, words_of_field


def functions_from_module(module):
    """Top-level functions without a leading underscore, narrowed by `__all__`; of two with one name the last counts."""
    offered = names_in_all(module)
    annotations = Annotations(module)
    functions = {
        node.name: function_from_node(node, annotations)
        for node in module.body
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not node.name.startswith("_")
    }
    return [function for name, function in functions.items() if offered is None or name in offered]


def names_in_all(module):
    """The names in `__all__`, or None without one. One that is computed is refused: it was meant to hide something."""
    names = None
    for node in module.body:
        if isinstance(node, ast.Assign):
            targets, is_addition = node.targets, False
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
            targets, is_addition = [node.target], isinstance(node, ast.AugAssign)
        else:
            continue
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            found = names_from_node(node.value)
            names = (names or set()) | found if is_addition else found
    return names


def names_from_node(node):
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)) and all(
        isinstance(item, ast.Constant) and isinstance(item.value, str) for item in node.elts
    ):
        return {item.value for item in node.elts}
    raise Refusal(f"line {node.lineno if node else 1}: `__all__` must be a plain list of quoted names")


def function_from_node(node, annotations):
    docstring = docstring_from_text(ast.get_docstring(node) or "")
    properties, required = {}, []
    for argument, default in arguments_with_defaults(node.args):
        schema, has_default = property_schema(argument, default, annotations)
        words = docstring.parameters.get(argument.arg)
        properties[argument.arg] = schema if words is None else {**schema, "description": words}
        if not has_default:
            required.append(argument.arg)
    schema = {"type": "object", "properties": properties, "additionalProperties": node.args.kwarg is not None}
    if required:
        schema["required"] = required
    return {"name": node.name, "description": docstring.description, "inputSchema": schema}


def arguments_with_defaults(arguments):
    positional = [*arguments.posonlyargs, *arguments.args]
    missing = [None] * (len(positional) - len(arguments.defaults))
    return [
        *zip(positional, [*missing, *arguments.defaults]),
        *zip(arguments.kwonlyargs, arguments.kw_defaults),
    ]


def property_schema(argument, default, annotations):
    """The schema of an argument, and whether it has a default, by itself or in `Field(…)`."""
    if is_field(default):
        field = SimpleNamespace(annotation=argument.annotation, value=default)
        schema, has_default = annotations.field(field, words_of_field(field))
    else:
        known, value = literal_from_node(default)
        schema, has_default = annotations.schema_from_node(argument.annotation), default is not None
        if known:
            schema = {**schema, "default": value}
    if argument.annotation is not None and schema.get("default", ...) is None:
        beside = {word: schema.pop(word) for word in ("description", "default") if word in schema}
        schema = {**or_null(schema), **beside}
    return schema, has_default
