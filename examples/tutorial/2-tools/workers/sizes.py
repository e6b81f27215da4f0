# /// script
# dependencies = ["humanize>=4,<5"]
# ///
import humanize


def in_words(bytes: int) -> str:
    """Say a number of bytes in words."""
    return humanize.naturalsize(bytes)
