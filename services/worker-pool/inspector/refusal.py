class Refusal(Exception):
    """Why a file is not offered, in words for who wrote it."""
