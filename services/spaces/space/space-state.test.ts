import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { SpaceEventSchema, SpaceMessageSchema } from "#gen/toolbus/space/v1/space_pb.ts";
import { emptySpace, eventAt, foldEvent, keptMessages, pageFromLatest } from "./space-state.ts";

function posted(id: string, sequence: number) {
  const value = create(SpaceMessageSchema, { id });
  return eventAt(create(SpaceEventSchema, { event: { case: "messagePosted", value } }), BigInt(sequence));
}

function messagesUpTo(count: number) {
  return Array.from({ length: count }, (_, index) =>
    create(SpaceMessageSchema, { id: `${index}`, sequence: BigInt(index * 3 + 1) }),
  );
}

describe("the fold of a space's log", () => {
  test("TOOL-13 pages from the latest on join to the whole, in order and without a gap", () => {
    fc.assert(
      fc.property(fc.nat(60), fc.integer({ min: 1, max: 20 }), (count, limit) => {
        const messages = messagesUpTo(count);
        const pages = [];
        for (let offset = 0; offset < count; offset += limit) {
          pages.unshift(...pageFromLatest(messages, { offset, limit, before: 0n }).messages);
        }
        expect(pages).toEqual(messages);
        expect(pageFromLatest(messages, { offset: count, limit, before: 0n }).messages).toEqual([]);
      }),
    );
  });

  test("TOOL-13 pages that follow each other join to the whole though messages come in between", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 1, max: 20 }), fc.nat(5), (count, limit, come) => {
        const pages = [];
        let [before, stand] = [0n, count];
        do {
          const page = pageFromLatest(messagesUpTo(stand), { offset: 0, limit, before });
          pages.unshift(...page.messages);
          [before, stand] = [page.before, stand + come];
        } while (before > 0n);
        expect(pages).toEqual(messagesUpTo(count));
      }),
    );
  });

  test("TOOL-13 a message whose first event is forgotten stands at its place all the same", () => {
    const state = emptySpace();
    foldEvent(state, posted("later", 7));
    const value = create(SpaceMessageSchema, { id: "earlier", sequence: 3n });
    foldEvent(state, eventAt(create(SpaceEventSchema, { event: { case: "toolDone", value } }), 9n));
    expect(state.messages.map(({ id }) => id)).toEqual(["earlier", "later"]);
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
