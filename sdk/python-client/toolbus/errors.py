"""What the suite refused, or could not do."""

import grpc
from grpc_status import rpc_status

from toolbus.error.v1 import error_pb2

_BROKEN = {
    grpc.StatusCode.UNKNOWN,
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.DATA_LOSS,
}


class ToolbusError(Exception):
    """`code` is one of gRPC, as `not_found`; `reason` tells cases of one code apart, as `AGENT_NOT_FOUND`."""

    def __init__(self, message: str, *, code: str, reason: str, metadata: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.metadata = metadata or {}


class RunError(ToolbusError):
    """A run that failed or was canceled; `end_reason` says why, as `MODEL_ERROR`."""

    def __init__(self, message: str, *, run_id: str, state: str, end_reason: str) -> None:
        is_canceled = state == "canceled"
        super().__init__(
            message, code="canceled" if is_canceled else "aborted", reason="CANCELED" if is_canceled else "INTERNAL"
        )
        self.run_id = run_id
        self.state = state
        self.end_reason = end_reason


class Broken(grpc.RpcError):
    """A stream that ended and must not."""

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.UNAVAILABLE

    def details(self) -> str:
        return "the stream ended"


def error_of(thrown: grpc.RpcError) -> ToolbusError:
    detail = _detail_of(thrown)
    message = thrown.details() or str(thrown)
    code = thrown.code().value[1].replace(" ", "_").replace("cancelled", "canceled")
    if detail is None:
        return ToolbusError(message, code=code, reason="UNSPECIFIED")
    return ToolbusError(message, code=code, reason=_name_of(detail.reason), metadata=dict(detail.metadata))


def is_passing(thrown: BaseException) -> bool:
    """Whether the same may be answered a little later.

    The suite says so, or the way to it is broken, of which no answer of the suite tells: those have a reason."""
    if not isinstance(thrown, grpc.RpcError):
        return False
    if _detail_of(thrown) is None:
        return thrown.code() in _BROKEN
    return thrown.code() == grpc.StatusCode.UNAVAILABLE


def _name_of(reason: int) -> str:
    """A suite that is newer than this library may give its number."""
    value = error_pb2.Reason.DESCRIPTOR.values_by_number.get(reason)
    return value.name.removeprefix("REASON_") if value is not None else str(reason)


def _detail_of(thrown: grpc.RpcError) -> error_pb2.ErrorDetail | None:
    if not isinstance(thrown, grpc.Call):
        return None
    status = rpc_status.from_call(thrown)
    for packed in status.details if status is not None else ():
        detail = error_pb2.ErrorDetail()
        if packed.Unpack(detail):
            return detail
    return None
