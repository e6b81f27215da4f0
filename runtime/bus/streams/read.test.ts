import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTestBus, type TestBus } from "../../../test/harness/bus.ts";
import { appendMany, text, textsOf } from "../testing/texts.ts";
import { readSubject } from "./read.ts";

let bus: TestBus;

beforeAll(async () => {
  bus = await openTestBus();
});
afterAll(() => bus[Symbol.asyncDispose]());

describe("reading a subject", () => {
  test("gives its messages only, in order, from a sequence on, over several batches", async () => {
    const other = appendMany(bus, "toolbus.run.read-b", 300);
    const sequences = await appendMany(bus, "toolbus.run.read-a", 600);
    await other;
    expect(await textsOf(bus, "toolbus.run.read-a")).toEqual(Array.from({ length: 600 }, (_, index) => `${index}`));
    const tail: string[] = [];
    const from = { fromSequence: sequences[590]! };
    for await (const message of readSubject(bus, "toolbus.run.read-a", from)) tail.push(text(message));
    expect(tail).toEqual(["590", "591", "592", "593", "594", "595", "596", "597", "598", "599"]);
    expect(await textsOf(bus, "toolbus.run.nothing")).toEqual([]);
  });
});
