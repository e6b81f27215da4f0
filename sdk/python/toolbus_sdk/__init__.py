"""What a Python tool imports. Nothing but the standard library stands behind it."""

from toolbus_sdk.asking import ToolError, call_tool
from toolbus_sdk.call import CallCanceled, get_config, get_idempotency_key, get_secret, progress
from toolbus_sdk.logs import log
from toolbus_sdk.worker import worker_main

__all__ = [
    "CallCanceled",
    "ToolError",
    "call_tool",
    "get_config",
    "get_idempotency_key",
    "get_secret",
    "log",
    "progress",
    "worker_main",
]
__version__ = "0.2.0"
