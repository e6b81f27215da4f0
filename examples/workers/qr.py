# /// script
# requires-python = ">=3.9"
# dependencies = ["segno>=1.6,<2"]
# ///
"""QR codes from text."""

import io
from typing import Literal

import segno
from toolbus_sdk import get_config, log, worker_main

__all__ = ["encode"]


def encode(text: str, error_correction: Literal["L", "M", "Q", "H"] = "M", format: Literal["svg", "text"] = "svg") -> dict:
    """Makes a QR code of a text.

    Args:
        text: What the code says when it is scanned.
        error_correction: How much of the code may be damaged: L 7 %, M 15 %, Q 25 %, H 30 %.
        format: `svg` for an image, `text` for blocks that a terminal shows.
    """
    code = segno.make_qr(text, error=error_correction)
    log.info("encoded", version=code.version, characters=len(text))
    drawn = io.StringIO()
    if format == "text":
        code.terminal(drawn, compact=True)
        return {"text": text, "version": code.version, "drawing": drawn.getvalue()}
    svg = code.svg_inline(scale=get_config("scale", 4))
    return {"text": text, "version": code.version, "svg": svg}


if __name__ == "__main__":
    worker_main()
