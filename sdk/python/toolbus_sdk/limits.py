"""Limits of this process, as the pool asks for them."""

import resource


def apply_limits(memory_bytes, processor_seconds):
    """0 means no limit. A function over the memory limit gets MemoryError; over the processor's the worker ends."""
    if memory_bytes:
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    if processor_seconds:
        resource.setrlimit(resource.RLIMIT_CPU, (processor_seconds, processor_seconds + 1))
