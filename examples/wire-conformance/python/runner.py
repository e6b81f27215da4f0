# /// script
# requires-python = ">=3.11"
# dependencies = ["nats-py[nkeys]==2.16.0", "PyYAML==6.0.3"]
# ///
"""Runs the cases of docs/connect-over-nats/cases/ against a server, a client or both, in whatever language they are.

    uv run runner.py --bus nats://127.0.0.1:4222 --control my.subject --service echo

The subject under test is a program on the bus, as docs/connect-over-nats/cases/README.md describes it. Without --control only
the cases of a server run that is served already, and those that need a command are counted as not run.
"""

import argparse
import asyncio
import os
import sys
from pathlib import Path

import nats
import yaml
from case_run import CaseRun, NotRun
from steps import do_step

CASES = Path(__file__).resolve().parents[3] / "docs" / "connect-over-nats" / "cases"
LONGEST_CASE_S = 60


def read_cases(directory: Path) -> list[dict]:
    """All cases, each with its side and its default method."""
    cases = []
    for path in sorted(directory.glob("*.yaml")):
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        for case in document["cases"]:
            cases.append({"method": "Unary", "alone": False, "large": False, **case, "side": document["under_test"]})
    return cases


async def run_case(connection, case: dict, options) -> str | None:
    """What is wrong, or None. Raises NotRun for a case that needs a control subject which is not there."""
    run = CaseRun(connection, case, options.control, options.service)
    place = "its beginning"
    try:
        await run.begin()
        for number, step in enumerate(case["steps"], 1):
            verb = next(key for key in step if key != "of")
            place = f"step {number} ({verb})"
            await do_step(run, verb, step.get("of", "a"), step[verb])
        run.assert_no_faults()
    except NotRun:
        raise
    except Exception as error:  # whatever it is, the case does not hold
        return f"{place}: {error or type(error).__name__}"
    finally:
        await run.end()
    return None


async def report(connection, case: dict, options, verdicts: dict[str, int]) -> None:
    name = f"{case['side']}: {case['case']}"
    try:
        fault = await asyncio.wait_for(run_case(connection, case, options), LONGEST_CASE_S)
    except NotRun as reason:
        verdicts["not run"] += 1
        print(f"----  {name}\n      not run: {reason}", flush=True)
        return
    except TimeoutError:
        fault = f"it was not over after {LONGEST_CASE_S} s"
    except Exception as error:  # the other cases have their verdicts all the same
        fault = f"its end: {error or type(error).__name__}"
    verdicts["failed" if fault else "passed"] += 1
    print(f"FAIL  {name}  {' '.join(case['rules'])}\n      {fault}" if fault else f"pass  {name}", flush=True)


async def main() -> int:
    options = arguments()
    cases = [
        case
        for case in read_cases(options.cases)
        if options.side in (case["side"], "both") and options.only in case["case"]
    ]
    connection = await nats.connect(options.bus, nkeys_seed=options.nkey, max_reconnect_attempts=0)
    if options.control is None:
        cases = [case for case in cases if case["side"] == "server"]
    else:
        await CaseRun(connection, {"side": "server", "alone": False}, options.control, options.service).serve_all()
    verdicts = {"passed": 0, "failed": 0, "not run": 0}
    places = asyncio.Semaphore(options.at_once)

    async def in_turn(case: dict) -> None:
        async with places:
            await report(connection, case, options, verdicts)

    await asyncio.gather(*(in_turn(case) for case in cases if not case["large"]))
    for case in cases:
        if case["large"]:
            await report(connection, case, options, verdicts)
    await connection.close()
    print(", ".join(f"{count} {verdict}" for verdict, count in verdicts.items()))
    return 0 if verdicts["failed"] == 0 and verdicts["passed"] > 0 else 1


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    bus = os.environ.get("NATS_URL", "nats://127.0.0.1:4222")
    parser.add_argument("--bus", default=bus, help="the address of nats-server (default: NATS_URL)")
    nkey = os.environ.get("NATS_NKEY")
    parser.add_argument("--nkey", default=nkey, help="the file of the key to sign in with (default: NATS_NKEY)")
    parser.add_argument("--control", help="where the subject under test takes commands")
    parser.add_argument("--service", default="echo", help="the bus service of the server under test")
    parser.add_argument("--side", choices=["server", "client", "both"], default="both")
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    parser.add_argument("--cases", type=Path, default=CASES)
    parser.add_argument("--at-once", type=int, default=12, help="how many cases run at a time: many of them wait")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
