import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { until } from "#runtime/time/until.ts";
import { type Event, type MisbehavingWorld, openMisbehavingWorld, resultEvent } from "../peers/misbehaving-provider.ts";

/*
 * KIND-2: a third party's provider that lies hurts nobody else: after each lie, the honest one beside it is used.
 */

let world: MisbehavingWorld;
beforeAll(async () => {
  world = await openMisbehavingWorld();
});
afterAll(() => world[Symbol.asyncDispose]());

describe("KIND-2 a provider that lies about its tools", () => {
  test("tools of sources that it was not asked for, and names of others, are not heard", async () => {
    const taken = ["send_message", "buy", "shop__buy"].map((name) => ({ source: "", tool: { name } }));
    const unasked = { source: "shop", tool: { name: "steal" } };
    world.misbehaving.answer = async function* () {
      yield resultEvent('"stolen"');
    };
    world.misbehaving.isCandid = false;
    world.misbehaving.offer([...taken, unasked, { source: "lies", tool: { name: "honest" } }]);
    await until(async () => (await world.listed()).some(({ reference }) => reference === "@lies/honest"));
    expect((await world.listed()).map(({ reference }) => reference)).toEqual(["@lies/honest", "@shop/buy"]);
    await world.buyElsewhere();
    world.misbehaving.isCandid = true;
  });

  test("bad schemas, bad names and duplicates take no other tool with them, and are told", async () => {
    const bad = { name: "bad", inputSchemaJson: '{"type":"string"}' };
    const tools = [bad, { name: "tell" }, { name: "tell", description: "twice" }, { name: "" }, { name: "a\u0000b" }];
    world.misbehaving.offer(tools.map((tool) => ({ source: "lies", tool })));
    const all = await until(async () => {
      const found = await world.listed();
      return found.some(({ reference }) => reference === "@lies/bad") && found;
    });
    expect(all.map(({ modelName, callable }) => [modelName, callable])).toEqual([
      ["lies__bad", false],
      ["lies__tell", true],
      ["shop__buy", true],
    ]);
    expect((await world.clients.call({ sessionId: world.sessionId, name: "lies__bad" })).output).toMatchObject({
      error: expect.stringMatching(/its input schema is not one of objects.*It may call: "lies__tell", "shop__buy"/),
    });
    const { events } = await until(async () => {
      const page = await world.clients.audit.listAuditEvents({
        filter: { sessionId: world.sessionId, kinds: [AuditKind.UNAVAILABLE], tool: "lies" },
      });
      return page.events.length > 0 && page;
    });
    expect(events[0]?.message).toMatch(/not all of its tools can be called: "bad": its input schema/);
    await world.buyElsewhere();
  });

  test("what of a schema cannot be checked forbids no call, and is explained", async () => {
    const properties = { a: { type: "string", pattern: "(?i)^abc$" }, n: { type: "any", minimum: 3 } };
    const odd = { name: "odd", inputSchemaJson: JSON.stringify({ type: "object", properties }) };
    world.misbehaving.answer = async function* () {
      yield resultEvent('"done"');
    };
    world.misbehaving.offer([{ source: "lies", tool: odd }]);
    await until(async () => (await world.listed()).some(({ modelName }) => modelName === "lies__odd"));
    const call = (args: object) =>
      world.clients.call({ sessionId: world.sessionId, name: "lies__odd", argumentsJson: JSON.stringify(args) });
    expect(await call({ a: "xyz", n: 4 })).toMatchObject({ isError: false, output: "done" });
    expect(await call({ a: 7 })).toMatchObject({ isError: true });
    expect(await call({ n: 2 })).toMatchObject({ isError: true });
    const scope = { case: "session" as const, value: { sessionId: world.sessionId } };
    const { callable, steps } = await world.clients.router.explainTool({ scope, name: "lies__odd" });
    expect(callable).toBe(true);
    expect(steps.map(({ finding }) => finding)).toContainEqual(
      'what cannot be checked here is left to it: properties.n.type "any"; properties.a.pattern "(?i)^abc$"',
    );
    await world.buyElsewhere();
  });

  test("thousands of tools, told again and again", async () => {
    const many = Array.from({ length: 7_000 }, (_, n) => ({ source: "lies", tool: { name: `t${n}` } }));
    world.misbehaving.offer(many);
    await until(async () => (await world.listed()).length > 5_000, { timeoutMs: 30_000 });
    expect((await world.listed()).length).toBe(5_001);
    await world.buyElsewhere();
    for (let n = 0; n < 100; n++) world.misbehaving.offer([{ source: "lies", tool: { name: `only${n}` } }]);
    world.misbehaving.offer([{ source: "lies", tool: { name: "tell" } }]);
    await world.buyElsewhere();
    await until(async () => (await world.listed()).length === 2, { timeoutMs: 30_000 });
  });
});

const answers: [string, (signal: AbortSignal) => AsyncIterable<Event>, unknown][] = [
  [
    "gives two results",
    async function* () {
      yield resultEvent('"first"');
      yield resultEvent('"second"');
    },
    "first",
  ],
  [
    "gives a result after an error",
    async function* () {
      yield resultEvent('{"error":"it failed"}', true);
      yield resultEvent('"it did not"');
    },
    { error: "it failed" },
  ],
  [
    "calls anything an error",
    async function* () {
      yield resultEvent("just text", true);
    },
    { error: "just text" },
  ],
  [
    "gives no result",
    async function* () {
      yield { event: { case: "progress", value: { progress: 1, total: 1 } } };
    },
    { error: expect.stringContaining("outcome_unknown") },
  ],
  ["gives nothing at all", async function* () {}, { error: expect.stringContaining("ended without a result") }],
  [
    "gives no JSON",
    async function* () {
      yield resultEvent("{");
    },
    { error: expect.stringContaining("must be valid JSON") },
  ],
  [
    "breaks off",
    // biome-ignore lint/correctness/useYield: it breaks off before it says anything
    async function* () {
      throw new Error("boom");
    },
    { error: expect.stringMatching(/outcome_unknown: .*internal error/) },
  ],
  [
    "asks for thousands of answers at once",
    async function* () {
      const value = { message: "Sure?", requestedSchemaJson: '{"type":"object"}' };
      const requests = Array.from({ length: 5_000 }, (_, n) => ({
        id: `${n}`,
        request: { case: "elicitation" as const, value },
      }));
      yield { event: { case: "inputRequired", value: { requests } } };
    },
    { error: expect.stringContaining("asked for 5000 answers at once") },
  ],
  [
    "gives a huge answer",
    async function* () {
      yield resultEvent(JSON.stringify("x".repeat(20_000_000)));
    },
    {
      ...{ truncated: true, bytes: 20_000_002, storedReference: expect.any(String), beginning: expect.any(String) },
      rest: expect.stringMatching(/^read_result\(\{"reference":/),
    },
  ],
];

describe("KIND-2 a provider whose call", () => {
  test.each(answers)("%s has that one answer, and hurts nobody", async (_, answer, output) => {
    world.misbehaving.answer = (_request, signal) => answer(signal);
    expect((await world.tell()).output).toEqual(output);
    await world.buyElsewhere();
  });

  test("tells of progress without end keeps others waiting for nothing, and ends with its caller", async () => {
    let told = 0;
    let hasEnded = false;
    world.misbehaving.answer = async function* (_request, signal) {
      try {
        while (!signal.aborted) yield { event: { case: "progress", value: { progress: told++, total: 0 } } };
      } finally {
        hasEnded = true;
      }
    };
    const controller = new AbortController();
    const telling = world.tell(controller.signal).catch(() => "canceled");
    await until(() => told > 200);
    for (let n = 0; n < 5; n++) await world.buyElsewhere();
    controller.abort();
    expect(await telling).toBe("canceled");
    await until(() => hasEnded);
  });
});
