# /// script
# requires-python = ">=3.9"
# dependencies = ["tabulate>=0.9,<1"]
# ///
"""Numbers described: the figures that one asks for first, and a table of them."""

import statistics
from typing import List, Optional

from tabulate import tabulate
from toolbus_sdk import progress, worker_main


def describe(values: List[float], label: Optional[str] = None) -> dict:
    """Describes a list of numbers: count, mean, median, deviation, smallest, largest.

    Args:
        values: The numbers; at least one.
        label: What they measure, as heading of the table.
    """
    if not values:
        raise ValueError("there is nothing to describe: values is empty")
    figures = {
        "count": len(values),
        "mean": statistics.fmean(values),
        "median": statistics.median(values),
        "deviation": statistics.stdev(values) if len(values) > 1 else 0.0,
        "smallest": min(values),
        "largest": max(values),
    }
    table = tabulate(figures.items(), headers=["", label or "value"], tablefmt="github")
    return {**figures, "table": table}


async def moving_average(values: List[float], window: int = 3) -> List[float]:
    """Smooths a series: each number of the answer is the mean of `window` numbers of the series.

    :param values: The series, in order.
    :param window: How many numbers make one mean.
    """
    if not 1 <= window <= len(values):
        raise ValueError(f"window must be from 1 to {len(values)}")
    averages = []
    for start in range(len(values) - window + 1):
        averages.append(statistics.fmean(values[start : start + window]))
        progress(start + 1, len(values) - window + 1)
    return averages


if __name__ == "__main__":
    worker_main()
