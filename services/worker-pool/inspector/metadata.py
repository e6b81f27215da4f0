"""PEP 723: the metadata of a script, in a comment block of its own, read as uv does, which installs by it."""

import os
import re
import subprocess
import tomllib

from refusal import Refusal

OPENING = "# /// script"
ALMOST_OPENING = re.compile(r"(?m)^#\s*///\s*script\s*$")
EFFECTS = ("pure", "idempotent", "at_most_once")
THREE_LINES = "# /// script\n# dependencies = []\n# ///"

# How uv says that it cannot read metadata. Any other words are of later steps, of which the first call is told.
UNREAD = re.compile(r"TOML parse error|PEP 723 metadata|closing tag")


def metadata_from_text(text):
    """The table of the `script` block; a Refusal when there is none or when it is malformed. Line ends are `\\n` by then."""
    start = text.find(OPENING)
    if start < 0:
        raise missing_block(text)
    first, *lines = text[start:].split("\n")
    if first != OPENING or (start > 0 and text[start - 1] not in "\r\n"):
        raise Refusal(f"malformed PEP 723 metadata: the first `{OPENING}` of the file must be a line of its own")
    end = end_of_comments(lines)
    closings = [index for index, line in enumerate(lines[:end]) if line == "# ///"]
    if not closings:
        raise unclosed_block()
    if OPENING in lines[closings[-1] :]:
        raise Refusal(f"malformed PEP 723 metadata: more than one `{OPENING}` block")
    return checked(table_from_lines(lines[: closings[-1]]))


def end_of_comments(lines):
    """Of the lines that are `#` alone, or begin with `# `, the number of the first ones. Not of what `splitlines` takes for
    a line: a comment may hold U+2028."""
    return next((index for index, line in enumerate(lines) if line != "#" and not line.startswith("# ")), len(lines))


def missing_block(text):
    if ALMOST_OPENING.search(text):
        return unclosed_block()
    return Refusal(
        "a plain Python file is not run inside a service; to make it a worker, add these three lines at its top:\n"
        + THREE_LINES
    )


def unclosed_block():
    return Refusal(
        "malformed PEP 723 metadata: the block `# /// script` needs lines that start with `# ` and an end `# ///`"
    )


def table_from_lines(lines):
    try:
        return tomllib.loads("\n".join(line[2:] for line in lines))
    except tomllib.TOMLDecodeError as error:
        raise Refusal(f"malformed PEP 723 metadata: {error}") from None


def checked(table):
    dependencies = table.get("dependencies", [])
    if not isinstance(dependencies, list) or not all(isinstance(item, str) for item in dependencies):
        raise Refusal("malformed PEP 723 metadata: `dependencies` must be a list of strings")
    if not isinstance(table.get("requires-python", ""), str):
        raise Refusal("malformed PEP 723 metadata: `requires-python` must be a string")
    return table


def effects_from_table(table, names):
    """LOOP-14: what a second execution of a function may do, by its name."""
    match table:
        case {"tool": {"toolbus": {"effects": dict(effects), **others}}} if not others and all(
            name in names and effect in EFFECTS for name, effect in effects.items()
        ):
            return effects
        case {"tool": {"toolbus": _}}:
            known = f"of functions of the file ({', '.join(names)}) whether they are {', '.join(EFFECTS)}"
            raise Refusal(f"malformed PEP 723 metadata: `tool.toolbus` has `effects` alone, which says {known}")
    return {}


def refuse_unread_by_uv(path):
    """What uv alone knows: the grammar of requirements and versions, and its own table. It runs this program, and tells its
    place; without a lock file `--frozen` ends after reading."""
    command = [os.environ["UV"], "export", "--script", path, "--frozen", "--offline", "--no-config", "--color", "never"]
    words = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False).stderr
    text = words.decode(errors="replace").strip().removeprefix("error: ")
    if UNREAD.search(text):
        raise Refusal(f"malformed PEP 723 metadata: uv says: {text}")
