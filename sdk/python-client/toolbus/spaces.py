"""Rooms in which people and agents write messages, and see the calls that are for people."""

import json
from collections.abc import Iterator
from typing import Any

import grpc

from toolbus.connection import Connection, random_name
from toolbus.content.v1 import content_pb2
from toolbus.errors import Broken, ToolbusError, error_of
from toolbus.space.v1 import space_pb2, space_service_pb2_grpc
from toolbus.space.v1 import space_service_pb2 as spaces


class Space:
    def __init__(self, connection: Connection, space_id: str) -> None:
        self.id = space_id
        self._connection = connection
        self._stub = space_service_pb2_grpc.SpaceServiceStub(connection.channel)

    def send(self, text: str, *, person_name: str = "") -> space_pb2.SpaceMessage:
        """Says something as the person that the key stands for, under that name if one is given."""
        request = spaces.SendMessageRequest(
            space_id=self.id, content=[content_pb2.ContentPart(text=text)], message_id=random_name()
        )
        if person_name:
            request.person_name = person_name
        return self._connection.send(self._stub.SendMessage, request).message

    def watch(self, *, from_sequence: int | None = None) -> Iterator[space_pb2.SpaceEvent]:
        """What happens, from there on: 0 for all that is kept; unless told, from the first `next` on. It ends once left."""
        place = from_sequence
        open_calls: list[Any] = []

        def open_stream() -> Iterator[spaces.WatchSpaceResponse]:
            request = spaces.WatchSpaceRequest(space_id=self.id, from_sequence=place)
            open_calls[:] = [self._connection.stream(self._stub.WatchSpace, request)]
            yield from open_calls[0]
            raise Broken()

        try:
            for update in self._connection.resumed(open_stream, self._connection.patience_s):
                kind = update.WhichOneof("update")
                if kind == "start":
                    place = update.start.next_sequence
                elif kind == "gap":
                    place = update.gap.last_sequence + 1
                elif kind == "event":
                    place = update.event.sequence + 1
                    yield update.event
        except grpc.RpcError as error:
            raise error_of(error) from error
        finally:
            for call in open_calls:
                call.cancel()  # a stream that is left would go on

    def answer(self, call_id: str, result: Any) -> None:
        """Answers a call that waits for a person."""
        self._submit(call_id, {"result_json": json.dumps(result)})

    def refuse(self, call_id: str, reason: str) -> None:
        """Says why a call that waits for a person is not done."""
        self._submit(call_id, {"error": reason})

    def _submit(self, call_id: str, outcome: dict[str, str]) -> None:
        request = spaces.AnswerToolCallRequest(
            space_id=self.id, call_id=call_id, submission_id=random_name(), **outcome
        )
        self._connection.send(self._stub.AnswerToolCall, request)


def open_space(connection: Connection, space_id: str) -> Space:
    """Opens the space, or finds it."""
    stub = space_service_pb2_grpc.SpaceServiceStub(connection.channel)
    try:
        connection.send(stub.GetSpace, spaces.GetSpaceRequest(space_id=space_id))
    except ToolbusError as error:
        if error.reason != "SPACE_NOT_FOUND":
            raise
        connection.send(stub.CreateSpace, spaces.CreateSpaceRequest(space_id=space_id))
    return Space(connection, space_id)
