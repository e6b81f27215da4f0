"""A tool file as the pool sees it: its metadata and its functions, or the reason why it is refused."""

import ast
import hashlib
import json
import os
import platform

from functions import functions_from_module
from metadata import effects_from_table, metadata_from_text, refuse_unread_by_uv
from refusal import Refusal


def read_tool_file(path):
    """What a file offers, as JSON can hold it. Never raises for what a file contains."""
    name = os.path.basename(path)
    digest = ""
    try:
        with open(path, "rb") as file:
            content = file.read()
        locked = locked_versions(path)
        digest = hashlib.sha256(content + locked).hexdigest()
        offer = offer_from_text(text_from_content(content), name, locked)
        refuse_unread_by_uv(path)
        return {"file": name, "digest": digest, **offer}
    except Refusal as refusal:
        return {"file": name, "digest": digest, "refused": str(refusal)}
    except OSError as error:
        return {"file": name, "digest": digest, "refused": f"it cannot be read: {error.strerror}"}


def locked_versions(path):
    """What `uv lock --script` has written for the file: with other versions it is another tool."""
    try:
        with open(path + ".lock", "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""


def text_from_content(content):
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise Refusal(f"it is not UTF-8: byte {error.start}") from None
    if text.startswith("\ufeff"):
        raise Refusal("it begins with a byte order mark, behind which uv finds no metadata: save it as UTF-8 without one")
    return text.replace("\r\n", "\n")


def offer_from_text(text, name, locked):
    """`environment` is equal for versions of a file that need the same packages."""
    metadata = metadata_from_text(text)
    needs = json.dumps(metadata, sort_keys=True, default=str).encode()
    try:
        module = ast.parse(text, name)
        functions = functions_from_module(module)
    except SyntaxError as error:
        raise Refusal(f"line {error.lineno}: {error.msg} (read by Python {platform.python_version()})") from None
    except (RecursionError, MemoryError, ValueError) as error:
        raise Refusal(f"it cannot be parsed: {type(error).__name__}: {error}") from None
    if not functions:
        raise Refusal("it offers no function: write a top-level `def` without a leading underscore")
    effects = effects_from_table(metadata, [function["name"] for function in functions])
    environment = hashlib.sha256(needs + locked).hexdigest()
    for function in functions:
        if function["name"] in effects:
            function["effect"] = effects[function["name"]]
    return {"environment": environment, "dependencies": metadata.get("dependencies", []), "functions": functions}
