"""A tool that uses all that the SDK offers, for type checkers: `npm run check -- mypy`."""

from typing import Optional

from toolbus_sdk import (
    CallCanceled,
    ToolError,
    call_tool,
    get_config,
    get_idempotency_key,
    get_secret,
    log,
    progress,
    worker_main,
)


async def fetch(path: str, times: int = 1) -> str:
    secret: str = get_secret("KEY")
    other: Optional[str] = get_secret("OTHER", None)
    address = str(get_config("server.address", "")) + path
    with log("fetch", address=address):
        progress(1, times, "asking")
        log.info("asks", key=get_idempotency_key(), known=other is not None)
    try:
        return str(await call_tool("get", address=address, secret=secret))
    except ToolError as error:
        log.warning(error)
        raise
    except CallCanceled:
        return ""


if __name__ == "__main__":
    worker_main()
