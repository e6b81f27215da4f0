"""JSON Schema from type hints as they are written. What is not understood means "any value", never a wrong schema."""

import ast

ANY = {}
SCHEMAS = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "None": {"type": "null"},
    "NoneType": {"type": "null"},
    "AnyStr": {"type": "string"},
    "Path": {"type": "string"},
    "PurePath": {"type": "string"},
    "datetime": {"type": "string", "format": "date-time"},
    "date": {"type": "string", "format": "date"},
    "time": {"type": "string"},  # the format `time` of JSON Schema wants a time zone
    "UUID": {"type": "string", "format": "uuid"},
    "Decimal": {"anyOf": [{"type": "number"}, {"type": "string", "pattern": r"^[+-]?(\d+(\.\d*)?|\.\d+)$"}]},
}
ARRAYS = {"list", "List", "Sequence", "MutableSequence", "Iterable", "Collection", "tuple", "Tuple"}
SETS = {"set", "Set", "frozenset", "FrozenSet", "AbstractSet", "MutableSet"}
OBJECTS = {"dict", "Dict", "Mapping", "MutableMapping", "OrderedDict", "defaultdict", "DefaultDict"}
SCHEMAS |= {name: {"type": "array"} for name in ARRAYS}
SCHEMAS |= {name: {"type": "array", "uniqueItems": True} for name in SETS}
SCHEMAS |= {name: {"type": "object"} for name in OBJECTS}
WRAPPERS = {"Required", "NotRequired", "ReadOnly", "Final", "InitVar"}
NO_FIELDS = {"ClassVar", "KW_ONLY"}
# What pydantic's Field says of a value, and what JSON Schema calls it; a length has a name by the type that it is of.
# Its patterns mean something else (letters of all languages), and its multiples of fractions are not exact.
FACTS = {"description": "description", "ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
LENGTHS = {"string": "Length", "array": "Items", "object": "Properties"}
MAX_DEPTH = 16


def literal_from_node(node):
    """(True, value) for a literal that JSON can hold, else (False, None)."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False, None
    return (True, value) if is_json(value) else (False, None)


def is_json(value):
    if isinstance(value, float):
        return value == value and abs(value) != float("inf")
    if isinstance(value, list):
        return all(map(is_json, value))
    if isinstance(value, dict):
        return all(isinstance(key, str) and is_json(item) for key, item in value.items())
    return value is None or isinstance(value, (str, int))


def last_name(node):
    """`Optional` of `typing.Optional`, `t.Optional` and `Optional`."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def items_of(node):
    return list(node.elts) if isinstance(node, ast.Tuple) else [node]


def union(schemas):
    members = []
    for schema in schemas:
        for member in schema["anyOf"] if set(schema) == {"anyOf"} else [schema]:
            if not member:
                return ANY
            if member not in members:
                members.append(member)
    return members[0] if len(members) == 1 else {"anyOf": members}


def or_null(schema):
    return union([schema, SCHEMAS["None"]])


class Annotations:
    """The type hints of one module, with the classes and aliases that it defines itself."""

    def __init__(self, module):
        self.classes = {node.name: node for node in module.body if isinstance(node, ast.ClassDef)}
        self.aliases = dict(alias for node in module.body for alias in aliases_from_node(node))
        self.opened = []

    def schema_from_node(self, node):
        if node is None or len(self.opened) > MAX_DEPTH:
            return ANY
        if isinstance(node, ast.Constant):
            return self.schema_from_constant(node.value)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return union(map(self.schema_from_node, [node.left, node.right]))
        if isinstance(node, ast.Subscript):
            return self.schema_from_subscript(last_name(node.value), items_of(node.slice))
        return self.schema_from_name(last_name(node))

    def schema_from_constant(self, value):
        if value is None:
            return SCHEMAS["None"]
        if not isinstance(value, str):
            return ANY
        try:
            return self.schema_from_node(ast.parse(value, mode="eval").body)
        except SyntaxError:
            return ANY

    def schema_from_name(self, name):
        if name in self.classes or name in self.aliases:
            return self.schema_from_definition(name)
        return SCHEMAS.get(name, ANY)

    def schema_from_subscript(self, name, items):
        if name == "Optional":
            return or_null(self.schema_from_node(items[0]))
        if name == "Union":
            return union(map(self.schema_from_node, items))
        if name == "Literal":
            return self.literal(items)
        if name == "Annotated":
            return self.annotated(items)
        if name in WRAPPERS:
            return self.schema_from_node(items[0])
        if name in ("tuple", "Tuple"):
            return self.tuple(items)
        if name in ARRAYS | SETS:
            return {**SCHEMAS[name], "items": self.schema_from_node(items[0])}
        if name in OBJECTS and len(items) == 2:
            values = self.schema_from_node(items[1])
            return {"type": "object", "additionalProperties": values} if values else {"type": "object"}
        return self.schema_from_name(name)

    def literal(self, items):
        values = [value for known, value in map(literal_from_node, items) if known]
        return self.values(values) if len(values) == len(items) else ANY

    def values(self, values):
        kinds = {type(value) for value in values}
        kind = {str: "string", bool: "boolean", int: "integer"}.get(kinds.pop()) if len(kinds) == 1 else None
        return {"type": kind, "enum": values} if kind else {"enum": values}

    def annotated(self, items):
        schema = self.schema_from_node(items[0])
        for extra in items[1:]:
            if isinstance(extra, ast.Call):
                schema = with_facts(schema, words_of(extra))
            elif isinstance(extra, ast.Constant) and isinstance(extra.value, str):
                schema = {**schema, "description": extra.value}
        return schema

    def tuple(self, items):
        if len(items) == 2 and isinstance(items[1], ast.Constant) and items[1].value is ...:
            return {"type": "array", "items": self.schema_from_node(items[0])}
        count = len(items)
        return {
            "type": "array",
            "prefixItems": [self.schema_from_node(item) for item in items],
            "minItems": count,
            "maxItems": count,
        }

    def schema_from_definition(self, name):
        if name in self.opened:
            return ANY
        self.opened.append(name)
        try:
            if name in self.aliases:
                return self.schema_from_node(self.aliases[name])
            return self.schema_from_class(self.classes[name])
        finally:
            self.opened.pop()

    def schema_from_class(self, node):
        bases = {last_name(base) for base in node.bases}
        decorators = {last_name(item.func if isinstance(item, ast.Call) else item) for item in node.decorator_list}
        if any(base and base.endswith("Enum") for base in bases):
            return self.enumeration(node)
        known = [self.classes[base] for base in bases if base in self.classes and base not in self.opened]
        if "TypedDict" in bases:
            return self.record(node, is_total=is_total(node), inherits=[])
        if bases & {"BaseModel"} or "dataclass" in decorators:
            return self.record(node, is_total=True, inherits=known)
        inherited = [self.schema_from_definition(base.name) for base in known]
        if inherited and inherited[0].get("type") == "object":
            return self.record(node, is_total=is_total(node), inherits=known)
        return ANY

    def record(self, node, *, is_total, inherits):
        """TypedDict, dataclass or model: a field with a default is optional, and so are all fields of `total=False`."""
        properties, required = {}, []
        has_names = takes_names(node)
        for parent in inherits:
            schema = self.schema_from_definition(parent.name)
            properties.update(schema.get("properties", {}))
            required += schema.get("required", [])
        for field in node.body:
            if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
                continue
            name, hint = field.target.id, field.annotation
            wrapper = last_name(hint.value) if isinstance(hint, ast.Subscript) else last_name(hint)
            words = words_of_field(field)
            if wrapper in NO_FIELDS or literal_from_node(words.get("init")) == (True, False):
                continue
            name = name if has_names else alias_from_words(words) or name
            properties[name], has_default = self.field(field, words)
            if wrapper == "Required" or (is_total and wrapper != "NotRequired" and not has_default):
                required.append(name)
        schema = {"type": "object", "properties": properties}
        return {**schema, "required": list(dict.fromkeys(required))} if required else schema

    def field(self, node, words):
        """The schema of a field, and whether it has a default, by itself or in `Field(…)`."""
        schema, default = with_facts(self.schema_from_node(node.annotation), words), node.value
        if default is None or is_field(default):
            default = words.get("default_factory", words.get("default"))
            if isinstance(default, ast.Constant) and default.value is ...:
                default = None
        known, value = literal_from_node(default)
        has_default = default is not None or None in words  # `Field(**given)` may have one
        return {**schema, "default": value} if known else schema, has_default

    def enumeration(self, node):
        assigned = [item.value for item in node.body if isinstance(item, ast.Assign)]
        values = [value for known, value in map(literal_from_node, assigned) if known]
        return self.values(values) if values and len(values) == len(assigned) else ANY


def is_field(node):
    return isinstance(node, ast.Call) and last_name(node.func) in ("Field", "field")


def words_of_field(node):
    """What `Field(…)` says of a field, in `Annotated[…]` or as its value; a positional argument is the default."""
    hint, words = node.annotation, {}
    extras = items_of(hint.slice)[1:] if isinstance(hint, ast.Subscript) and last_name(hint.value) == "Annotated" else []
    for call in filter(is_field, [*extras, node.value]):
        words.update(words_of(call))
        if call.args:
            words["default"] = call.args[0]
    return words


def words_of(call):
    return {word.arg: word.value for word in call.keywords}


def alias_from_words(words):
    """The first name of several; None for what is no text as it is written."""
    alias = words.get("validation_alias", words.get("alias"))
    first = alias.args[0] if isinstance(alias, ast.Call) and alias.args else alias
    _, text = literal_from_node(first)
    return text if isinstance(text, str) else None


def takes_names(node):
    """Whether a model takes its fields by their names beside their aliases."""
    configs = [item.value for item in node.body if isinstance(item, ast.Assign) and isinstance(item.value, ast.Call)]
    words = {name: value for config in configs for name, value in words_of(config).items()}
    return any(literal_from_node(words.get(name)) == (True, True) for name in ("populate_by_name", "validate_by_name"))


def with_facts(schema, words):
    known = {word: value for word, node in words.items() for is_known, value in [literal_from_node(node)] if is_known}
    facts = {FACTS[word]: value for word, value in known.items() if word in FACTS and value is not None}
    members = [member.get("type") for member in schema.get("anyOf", [schema])]
    for bound in ("min", "max"):
        length = known.get(f"{bound}_length")
        if length is not None:
            facts.update({bound + LENGTHS[kind]: length for kind in members if kind in LENGTHS})
    return {**schema, **facts}


def is_total(node):
    return literal_from_node(words_of(node).get("total")) != (True, False)


def aliases_from_node(node):
    """`Color = Literal["red"]`, `Color: TypeAlias = …` and `type Color = …`."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        if isinstance(node.value, (ast.Subscript, ast.BinOp, ast.Name, ast.Attribute)):
            yield node.targets[0].id, node.value
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
        if last_name(node.annotation) == "TypeAlias":
            yield node.target.id, node.value
    elif type(node).__name__ == "TypeAlias":
        yield node.name.id, node.value
