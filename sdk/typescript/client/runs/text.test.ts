import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { WatchRunResponseSchema } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { createTextReader } from "./text.ts";

type Update = NonNullable<MessageInitShape<typeof WatchRunResponseSchema>["update"]>;

const delta = (attempt: number, text: string): Update => ({
  case: "delta",
  value: { turn: 1, attempt, delta: { case: "text", value: text } },
});
const committed = (text: string): Update => {
  const content = [{ part: { case: "text" as const, value: text } }];
  return {
    case: "event",
    value: {
      event: { case: "turnCommitted", value: { turn: 1, items: [{ item: { case: "message", value: { content } } }] } },
    },
  };
};
const replaced = (attempt: number, text: string): Update => ({
  case: "replaced",
  value: { turn: 1, attempt, text, deltaCount: 3 },
});

/** What a reader shows at the end who does as each piece says. */
function shown(...updates: Update[]): { text: string; pieces: number } {
  const reader = createTextReader();
  const pieces = updates.flatMap((update) => reader.piecesOf(create(WatchRunResponseSchema, { update }).update));
  return {
    text: pieces.reduce((text, piece) => (piece.replaces ? piece.text : text + piece.text), ""),
    pieces: pieces.length,
  };
}

test.each<[string, Update[], { text: string; pieces: number }]>([
  ["comes piece by piece", [delta(1, "a"), delta(1, "b"), committed("ab")], { text: "ab", pieces: 2 }],
  ["is whole though deltas were missed", [delta(1, "a"), committed("abc")], { text: "abc", pieces: 2 }],
  ["is whole though all were missed", [committed("abc")], { text: "abc", pieces: 1 }],
  ["begins anew with another attempt", [delta(1, "x"), delta(2, "a"), delta(2, "b")], { text: "ab", pieces: 3 }],
  ["goes on behind a reset", [delta(1, "a"), replaced(1, "ab"), delta(1, "c")], { text: "abc", pieces: 3 }],
  ["is replaced by a reset of other words", [delta(1, "x"), replaced(2, "ab")], { text: "ab", pieces: 2 }],
])("LOOP-10 the text of a turn %s", (_, updates, expected) => {
  expect(shown(...updates)).toEqual(expected);
});
