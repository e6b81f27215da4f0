"""The library for programs that use agents.

It does nothing that the suite does not confirm: each of its words is one of the contract, and what it adds is to send again
what was not answered, and to take up streams where they broke.
"""

from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)  # the contract's messages are modules of this package, too

from toolbus.client import Toolbus as Toolbus
from toolbus.errors import RunError as RunError
from toolbus.errors import ToolbusError as ToolbusError
from toolbus.runs import Run as Run
from toolbus.runs import RunResult as RunResult
from toolbus.sessions import Session as Session
from toolbus.spaces import Space as Space
from toolbus.text import TextPiece as TextPiece
from toolbus.tools import Tool as Tool
from toolbus.tools import tool as tool
