"""Imports a tool file as a module, and finds the functions that it offers."""

import importlib.machinery
import importlib.util
import os
import sys


class ToolLoader(importlib.machinery.SourceFileLoader):
    """Uses no compiled file: one that was made within the second of an edit passes for that of the new text."""

    def path_stats(self, path):
        raise OSError("compiled files are not used")


LOADERS = (
    (importlib.machinery.ExtensionFileLoader, importlib.machinery.EXTENSION_SUFFIXES),
    (ToolLoader, importlib.machinery.SOURCE_SUFFIXES),
    (importlib.machinery.SourcelessFileLoader, importlib.machinery.BYTECODE_SUFFIXES),
)


def import_tool(path):
    """The module of a tool file. What lies beside it can be imported too, but hides nothing else of the same name."""
    stem = os.path.splitext(os.path.basename(path))[0]
    name = f"toolbus_tool_{stem}" if is_taken(stem) else stem
    directory = os.path.dirname(path)
    sys.path.append(directory)
    sys.path_hooks.insert(0, finder_within(directory))
    specification = importlib.util.spec_from_file_location(name, path, loader=ToolLoader(name, path))
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    specification.loader.exec_module(module)
    return module


def finder_within(directory):
    """Finds modules of the directory and of packages in it, and leaves every other folder to Python."""
    find = importlib.machinery.FileFinder.path_hook(*LOADERS)

    def find_within(path):
        if os.path.commonpath([directory, os.path.abspath(path)]) != directory:
            raise ImportError(f"{path} is elsewhere")
        return find(path)

    return find_within


def is_taken(stem):
    """Whether a module of that name exists already: a tool `segno.py` may well import the package `segno`."""
    if stem in sys.modules:
        return True
    try:
        return importlib.util.find_spec(stem) is not None
    except (ImportError, ValueError):
        return False


def functions_of(module):
    """Functions that the module defines itself, without a leading underscore, narrowed by `__all__`."""
    offered = getattr(module, "__all__", None)
    return {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_")
        and callable(value)
        and not isinstance(value, type)
        and getattr(value, "__module__", None) == module.__name__
        and (offered is None or name in offered)
    }
