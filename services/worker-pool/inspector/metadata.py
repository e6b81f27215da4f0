"""PEP 723: the metadata of a script, in a comment block of its own."""

import re
import tomllib

from refusal import Refusal

# As PEP 723 gives it. Line ends are \n by then.
BLOCK = re.compile(r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$")
EMPTY_BLOCK = re.compile(r"(?m)^# /// script$\n^# ///$")
OPENING = re.compile(r"(?m)^#\s*///\s*script\s*$")

THREE_LINES = "# /// script\n# dependencies = []\n# ///"


def metadata_from_text(text):
    """The table of the `script` block; a Refusal when there is none or when it is malformed."""
    blocks = [match["content"] for match in BLOCK.finditer(text) if match["type"] == "script"]
    if len(blocks) > 1:
        raise Refusal("malformed PEP 723 metadata: more than one `# /// script` block")
    if not blocks:
        if EMPTY_BLOCK.search(text):
            return {}
        raise missing_block(text)
    return checked(table_from_block(blocks[0]))


def missing_block(text):
    if OPENING.search(text):
        return Refusal(
            "malformed PEP 723 metadata: the block `# /// script` needs lines that start with `# ` and an end `# ///`"
        )
    return Refusal(
        "a plain Python file is not run inside a service; to make it a worker, add these three lines at its top:\n"
        + THREE_LINES
    )


def table_from_block(content):
    lines = (line[2:] if line.startswith("# ") else line[1:] for line in content.splitlines(keepends=True))
    try:
        return tomllib.loads("".join(lines))
    except tomllib.TOMLDecodeError as error:
        raise Refusal(f"malformed PEP 723 metadata: {error}") from None


def checked(table):
    dependencies = table.get("dependencies", [])
    if not isinstance(dependencies, list) or not all(isinstance(item, str) for item in dependencies):
        raise Refusal("malformed PEP 723 metadata: `dependencies` must be a list of strings")
    if not isinstance(table.get("requires-python", ""), str):
        raise Refusal("malformed PEP 723 metadata: `requires-python` must be a string")
    return table
