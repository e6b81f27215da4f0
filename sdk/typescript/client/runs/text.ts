import type { TurnCommitted } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { RunEndReason } from "#gen/toolbus/run/v1/run_pb.ts";
import type { RunUpdate } from "./place.ts";

export interface TextPiece {
  readonly turn: number;
  readonly text: string;
  /** Whether it stands in place of all that was told of its turn, as when the model was asked again. */
  readonly replaces: boolean;
}

/**
 * Makes of a run's updates the text of each turn: whatever was missed between, the pieces make up what is committed. The answer of a
 * tool at which a run stops comes last, as one piece.
 */
export function createTextReader(): { piecesOf(update: RunUpdate): TextPiece[] } {
  let [turn, attempt, told] = [0, 0, ""];

  function become(text: string, of: number): TextPiece[] {
    const before = of === turn ? told : "";
    [turn, told] = [of, text];
    if (text === before) return [];
    return text.startsWith(before)
      ? [{ turn, text: text.slice(before.length), replaces: false }]
      : [{ turn, text, replaces: true }];
  }

  return {
    piecesOf(update) {
      if (update.case === "delta" && update.value.delta.case === "text") {
        const { delta } = update.value;
        const isSame = update.value.turn === turn && update.value.attempt === attempt;
        attempt = update.value.attempt;
        return become((isSame ? told : "") + delta.value, update.value.turn);
      }
      if (update.case === "replaced") {
        attempt = update.value.attempt;
        return become(update.value.text, update.value.turn);
      }
      if (update.case === "event" && update.value.event.case === "turnCommitted")
        return become(textOf(update.value.event.value), update.value.event.value.turn);
      if (update.case === "event" && update.value.event.case === "ended") {
        const { endReason, outputText } = update.value.event.value;
        if (endReason === RunEndReason.STOPPED_AT_TOOL) return become(outputText, turn + 1);
      }
      return [];
    },
  };
}

function textOf({ items }: TurnCommitted): string {
  const parts = items.flatMap(({ item }) => (item.case === "message" ? item.value.content : []));
  return parts.map(({ part }) => (part.case === "text" ? part.value : "")).join("");
}
