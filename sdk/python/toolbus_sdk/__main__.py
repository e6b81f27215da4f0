"""The runner: `python PATH/toolbus_sdk FILE` imports a tool file, which need not start anything itself, and serves it."""

import os
import sys

if __name__ == "__main__":
    # The folder of this file must not be searched for modules: its files would hide others of the same name.
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    from toolbus_sdk.worker import run_file

    run_file(sys.argv[1:])
