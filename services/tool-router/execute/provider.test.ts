import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { type CallToolResponse, CallToolResponseSchema, ScopeSchema } from "#gen/toolbus/tool/v1/provider_pb.ts";
import { Effect } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { Failure } from "#runtime/failure/failure.ts";
import type { ProviderClient } from "../offers/provider-client.ts";
import { agent, offer, tool } from "../testing/tools.ts";
import { createToolSet } from "../tool-set.ts";
import { decideDeadline } from "./deadline.ts";
import { createProviderExecution } from "./provider.ts";

const result = create(CallToolResponseSchema, { event: { case: "result", value: { outputJson: '"ok"' } } });

type Attempt = (signal: AbortSignal) => AsyncIterable<CallToolResponse>;

function entryFor(effect: Effect) {
  const offered = offer("mcp", { files: [] });
  const tools = [
    {
      $typeName: "toolbus.tool.v1.OfferedTool" as const,
      source: "files",
      tool: tool("read", { effect, timeoutMs: 60 }),
    },
  ];
  return createToolSet(agent({ use: ["*"] }), new Map(), [{ ...offered, tools }]).byReference.get("@files/read")!;
}

/** One call, whose provider makes the given attempts one after the other. */
async function call(effect: Effect, attempts: Attempt[], signal = new AbortController().signal) {
  const unused = () => Promise.reject(new Error("not asked for"));
  let made = 0;
  const client: ProviderClient = {
    address: "fake",
    listTools: unused,
    watchTools: () => ({ [Symbol.asyncIterator]: () => ({ next: unused }) }),
    callTool: (_, options) => attempts[made++]!(options.signal),
  };
  const entry = entryFor(effect);
  if (entry.executor.kind !== "provider") throw new Error(entry.executor.kind);
  const { executor } = entry;
  const { execute } = createProviderExecution({ find: () => client, graceMs: () => 20 });
  const deadline = decideDeadline(entry, Date.now(), undefined);
  const request = {
    callId: "c",
    entry,
    executor,
    scope: create(ScopeSchema),
    argumentsJson: "{}",
    deadline,
    runDeadline: undefined,
  };
  const answer = await execute(request, { signal, emit: () => {} });
  return { text: answer.outputJson, made };
}

const succeeds: Attempt = async function* () {
  yield result;
};
const fails = (failure: Failure): Attempt =>
  // biome-ignore lint/correctness/useYield: a stream that fails before it brings anything
  async function* () {
    throw failure;
  };
const hangs: Attempt = async function* (signal) {
  await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
};
const lost = new Failure("unavailable", "the peer fell silent");

describe("calls of providers", () => {
  test("LOOP-14 a lost call is repeated if its effect may be, and told as unknown if not", async () => {
    expect(await call(Effect.IDEMPOTENT, [fails(lost), succeeds])).toEqual({ text: '"ok"', made: 2 });
    const { text, made } = await call(Effect.AT_MOST_ONCE, [fails(lost), succeeds]);
    expect(made).toBe(1);
    expect(text).toBe('{"error":"outcome_unknown: provider \\"mcp\\": unavailable: the peer fell silent"}');
  });

  test("a call that was never sent, or that the provider refused, is no unknown outcome", async () => {
    const notSent = new Failure("unavailable", "nobody serves it", { reason: "NOT_SENT" });
    expect((await call(Effect.AT_MOST_ONCE, [fails(notSent)])).text).toContain("nothing was started");
    const refusal = new Failure("not_found", "there is no such tool");
    expect((await call(Effect.AT_MOST_ONCE, [fails(refusal)])).text).toBe(
      '{"error":"provider \\"mcp\\": not_found: there is no such tool"}',
    );
  });

  test("KIND-4 a provider that hangs is given up after the tool's own time", async () => {
    expect((await call(Effect.PURE, [hangs])).text).toBe('{"error":"Tool \\"@files/read\\" timed out after 60ms"}');
  });

  test("a stream that ends without a result is no success", async () => {
    const ends: Attempt = async function* () {};
    expect((await call(Effect.AT_MOST_ONCE, [ends])).text).toContain("the call ended without a result");
  });

  test("LOOP-15 cancelling ends the call", async () => {
    const controller = new AbortController();
    const calling = call(Effect.AT_MOST_ONCE, [hangs], controller.signal);
    controller.abort(new Error("enough"));
    expect((await calling).text).toBe('{"error":"outcome_unknown: the call was canceled"}');
  });
});

test("KIND-4 the tool's own time wins, and the run's deadline caps it", () => {
  const entry = entryFor(Effect.PURE);
  expect(decideDeadline(entry, 1_000, undefined)).toEqual({ at: 1_060, timeoutMs: 60 });
  expect(decideDeadline(entry, 1_000, 1_010)).toEqual({ at: 1_010, timeoutMs: 10 });
  const own = (provider: string) => {
    const offers = [offer(provider, { "": ["x"] }, { declared: new Map() })];
    const found = createToolSet(agent({ use: ["x"] }), new Map(), offers).byReference.get("x")!;
    return decideDeadline(found, 0, undefined).timeoutMs;
  };
  expect([own("caller"), own("worker")]).toEqual([60_000, 30_000]);
});
