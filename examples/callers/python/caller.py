# /// script
# requires-python = ">=3.10"
# dependencies = ["toolbus", "toolbus-contract"]
#
# [tool.uv.sources]
# toolbus = { path = "../../../sdk/python-client" }
# toolbus-contract = { path = "../../../gen/python" }
# ///
"""Opens a session, offers it a tool of this program, and lets an agent call it.

Run it with `uv run examples/callers/python/caller.py A-17`, the suite's address in TOOLBUS_URL and a key in TOOLBUS_API_KEY.
"""

import sys

from toolbus import Toolbus, tool


@tool
def find_order(order: str) -> dict[str, str]:
    """Tells where an order is"""
    return {"order": order, "state": "on its way"}


with Toolbus().open_session("clerk") as session:
    session.offer("desk", [find_order])  # the agent sees desk_find_order
    print(session.run(sys.argv[1] if len(sys.argv) > 1 else "A-17").result().text)
