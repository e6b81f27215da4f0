"""How the pool starts a worker: `toolbus_sdk [--threads N] … FILE`."""

import argparse
import os
from typing import NamedTuple


class Settings(NamedTuple):
    threads: int = 8
    max_line_bytes: int = 64 * 1024 * 1024
    memory_bytes: int = 0
    processor_seconds: int = 0
    file: str = ""


def settings_from_arguments(arguments):
    parser = argparse.ArgumentParser(prog="toolbus_sdk", description="Serves the functions of one tool file.")
    parser.add_argument("--threads", type=int, help="how many functions run at the same time")
    parser.add_argument("--max-line-bytes", type=int, help="size of the largest result")
    parser.add_argument("--memory-bytes", type=int, help="limit of the address space; 0 means none")
    parser.add_argument("--processor-seconds", type=int, help="limit of processor time; 0 means none")
    parser.add_argument("file")
    parser.set_defaults(**Settings._field_defaults)
    found = vars(parser.parse_args(arguments))
    return Settings(**{**found, "file": os.path.abspath(found["file"])})
