"""Makes of a run's updates the text of each turn."""

from collections.abc import Iterator
from dataclasses import dataclass

from toolbus.run.v1 import run_service_pb2 as runs
from toolbus.run.v1.run_event_pb2 import TurnCommitted
from toolbus.run.v1.run_pb2 import RUN_END_REASON_STOPPED_AT_TOOL


@dataclass(frozen=True)
class TextPiece:
    """One that `replaces` stands in place of all that was told of its turn, as when the model was asked again."""

    turn: int
    text: str
    replaces: bool


class TextReader:
    """Whatever was missed between, the pieces make up what is committed. A run that stops at a tool ends with its answer."""

    def __init__(self) -> None:
        self._turn = 0
        self._attempt = 0
        self._told = ""

    def pieces_of(self, update: runs.WatchRunResponse) -> Iterator[TextPiece]:
        kind = update.WhichOneof("update")
        if kind == "delta" and update.delta.WhichOneof("delta") == "text":
            is_same = update.delta.turn == self._turn and update.delta.attempt == self._attempt
            self._attempt = update.delta.attempt
            yield from self._become((self._told if is_same else "") + update.delta.text, update.delta.turn)
        elif kind == "replaced":
            self._attempt = update.replaced.attempt
            yield from self._become(update.replaced.text, update.replaced.turn)
        elif kind == "event" and update.event.WhichOneof("event") == "turn_committed":
            yield from self._become(_text_of(update.event.turn_committed), update.event.turn_committed.turn)
        elif kind == "event" and update.event.ended.end_reason == RUN_END_REASON_STOPPED_AT_TOOL:
            yield from self._become(update.event.ended.output_text, self._turn + 1)

    def _become(self, text: str, turn: int) -> Iterator[TextPiece]:
        before = self._told if turn == self._turn else ""
        self._turn, self._told = turn, text
        if text == before:
            return
        goes_on = text.startswith(before)
        yield TextPiece(turn, text[len(before) :] if goes_on else text, not goes_on)


def _text_of(committed: TurnCommitted) -> str:
    messages = [item.message for item in committed.items if item.WhichOneof("item") == "message"]
    return "".join(part.text for message in messages for part in message.content)
