"""What the cases say of bodies and headers: as bytes to send, and as what has to come."""

import base64
import hashlib
import json
import re
import time

PATTERN = bytes(range(251))
LONGEST_HEX = 1024


class Fault(Exception):
    """Why a case does not hold."""


def patterned(size: int) -> bytes:
    return (PATTERN * (size // len(PATTERN) + 1))[:size]


def bytes_value(value: bytes) -> bytes:
    """A google.protobuf.BytesValue as protobuf has it."""
    if not value:
        return b""
    length, rest = bytearray(), len(value)
    while rest >= 128:
        length.append(rest % 128 + 128)
        rest //= 128
    return b"\x0a" + bytes(length) + bytes([rest]) + value


def bytes_of(body) -> bytes:
    if body is None:
        return b""
    if isinstance(body, str):
        return bytes.fromhex(body)
    if "value" in body:
        return bytes_value(bytes.fromhex(body["value"]))
    if "value_of" in body:
        return bytes_value(patterned(body["value_of"]))[body.get("from", 0) : body.get("to")]
    if "zeros" in body:
        return bytes(body["zeros"])
    if "credit" in body:
        return b"".join(number.to_bytes(4, "big") for number in body["credit"])
    if "error" in body:
        return json.dumps({"code": body["error"]["code"], "message": body["error"].get("says", "")}).encode()
    raise Fault(f"this body can only be expected: {body}")


def told_as(body: dict) -> str:
    """How a client tells of a value: by its digest, when it is large."""
    value = bytes.fromhex(body["value"]) if "value" in body else patterned(body["value_of"])
    return value.hex() if len(value) <= LONGEST_HEX else f"sha256:{hashlib.sha256(value).hexdigest()}"


def check_body(expected, came: bytes) -> None:
    if expected is None:
        return
    if isinstance(expected, dict) and "credit_at_least" in expected:
        granted = [int.from_bytes(came[:4], "big"), int.from_bytes(came[4:], "big")]
        if len(came) != 8 or any(least > got for least, got in zip(expected["credit_at_least"], granted)):
            raise Fault(f"the credit is only {granted}")
    elif isinstance(expected, dict) and "error" in expected:
        check_error(expected["error"], came)
    elif bytes_of(expected) != came:
        raise Fault(f"the body is {came[:32].hex()} ({len(came)} bytes) and not {bytes_of(expected)[:32].hex()}")


def check_error(expected: dict, came: bytes) -> None:
    found = json.loads(came)
    known = [detail["value"] for detail in found.get("details", []) if detail["type"] == "google.protobuf.BytesValue"]
    details = [base64.b64decode(value + "==").hex() for value in known]
    if found.get("code") != expected["code"] or expected.get("says", "") not in found.get("message", ""):
        raise Fault(f"the error is {came[:200].decode()} and not {expected}")
    if "details" in expected and expected["details"] != details:
        raise Fault(f"the details are {details}")


class HeaderLines(dict):
    """Header lines for nats-py, which has a dictionary for them: one key may be there several times."""

    def __init__(self, headers: dict):
        super().__init__()
        self.lines: list[tuple[str, str]] = []
        for key, value in headers.items():
            for each in value if isinstance(value, list) else [value]:
                if each is not None:
                    self.lines.append((key, text_of_header(each)))

    def items(self):
        return self.lines

    def __bool__(self):
        return bool(self.lines)


def text_of_header(value) -> str:
    return str(now_ms() + value["now"]) if isinstance(value, dict) else value


def now_ms() -> int:
    return int(time.time() * 1000)


def check_headers(expected, came: dict[str, str] | None) -> None:
    """What is not named may be there."""
    if expected is None:
        return
    if expected == "none":
        if came:
            raise Fault(f"there are headers: {came}")
        return
    for key, value in expected.items():
        found = (came or {}).get(key)
        if not is_header(value, found):
            raise Fault(f"the header {key} is {found} and not {value}")


def is_header(expected, found: str | None) -> bool:
    if expected is None or found is None:
        return expected is None and found is None
    if isinstance(expected, list):
        return found == ", ".join(expected)
    if isinstance(expected, str):
        return found == expected
    if not re.fullmatch(r"\d{1,15}", found):
        return False
    if "at_most" in expected:
        return int(found) <= expected["at_most"]
    return abs(int(found) - now_ms() - expected["now"]) <= expected.get("give", 1500)
