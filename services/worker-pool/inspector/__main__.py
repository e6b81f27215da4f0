"""Reads tool files without running them: `python3 -I inspector FILE...` prints one JSON line a file, in their order."""

import json
import sys

from tool_file import read_tool_file

for path in sys.argv[1:]:
    print(json.dumps(read_tool_file(path)), flush=True)
