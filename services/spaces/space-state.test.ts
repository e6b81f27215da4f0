import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { SpaceEventSchema, SpaceMessageSchema } from "#gen/toolbus/space/v1/space_pb.ts";
import { emptySpace, eventAt, foldEvent, keptMessages, pageFromLatest } from "./space-state.ts";

function posted(id: string, sequence: number) {
  const value = create(SpaceMessageSchema, { id });
  return eventAt(create(SpaceEventSchema, { event: { case: "messagePosted", value } }), BigInt(sequence));
}

describe("the fold of a space's log", () => {
  test("TOOL-13 pages from the latest on join to the whole, in order and without a gap", () => {
    fc.assert(
      fc.property(fc.nat(60), fc.integer({ min: 1, max: 20 }), (count, limit) => {
        const messages = Array.from({ length: count }, (_, index) => create(SpaceMessageSchema, { id: `${index}` }));
        const pages = [];
        for (let offset = 0; offset < count; offset += limit) pages.unshift(...pageFromLatest(messages, offset, limit));
        expect(pages).toEqual(messages);
        expect(pageFromLatest(messages, count, limit)).toEqual([]);
      }),
    );
  });

  test("a message gets the place of its first event and keeps it", () => {
    const state = emptySpace();
    foldEvent(state, posted("a", 3));
    foldEvent(state, posted("b", 7));
    foldEvent(state, posted("a", 9));
    expect(state.messages.map(({ id, sequence }) => [id, sequence])).toEqual([
      ["a", 3n],
      ["b", 7n],
    ]);
    expect(state.sequence).toBe(9n);
  });

  test("no more is kept than the stream keeps", () => {
    const state = emptySpace();
    for (let index = 1; index <= keptMessages + 2; index++) foldEvent(state, posted(`${index}`, index));
    expect([state.messages.length, state.messages[0]?.id, state.messagesById.has("2")]).toEqual([
      keptMessages,
      "3",
      false,
    ]);
  });
});
