// Our client against a server written from docs/connect-over-nats/README.md alone: calls that end before their time.

import { type Client, Code, ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { EchoService } from "#runtime/rpc/nats/testing/echo-service.ts";
import { tickedMs } from "#runtime/time/testing/machine-time.ts";
import { until } from "#runtime/time/until.ts";
import { type BothEnds, failureOf, heartbeatsOf, one, openBothEnds, values } from "./testing/both-ends.ts";
import { hanging, sequence, serving } from "./testing/peer-server.ts";

const stack = new AsyncDisposableStack();
let ends: BothEnds;

beforeAll(async () => {
  ends = stack.use(await openBothEnds());
});
afterAll(() => stack.disposeAsync());

describe("our client with a server by the document alone, and an end before its time", () => {
  const shapes: [string, (client: Client<typeof EchoService>, signal?: AbortSignal) => Promise<unknown>][] = [
    ["a unary call", (client, signal) => client.unary(one, { ...(signal && { signal }) })],
    ["a stream", (client, signal) => Array.fromAsync(client.serverStream(one, { ...(signal && { signal }) }))],
  ];

  it.each(shapes)("cancels %s, which aborts the handler", async (_name, call) => {
    const { contexts, echo } = hanging();
    await using pair = await serving(ends, echo);
    const controller = new AbortController();
    const failure = failureOf(ConnectError, call(pair.client, controller.signal));
    await until(() => contexts.length === 1);
    controller.abort();
    await until(() => contexts[0]?.signal.aborted === true);
    expect(contexts[0]?.signal.reason).toMatchObject({ code: "canceled" });
    expect(await failure).toMatchObject({ code: Code.Canceled });
  });

  it("sets a deadline, which the handler has too", async () => {
    const { contexts, echo } = hanging();
    await using pair = await serving(ends, echo);
    expect(await failureOf(ConnectError, pair.client.unary(one, { timeoutMs: 300 }))).toMatchObject({
      code: Code.DeadlineExceeded,
    });
    expect(contexts[0]?.timeoutMs).toBeLessThanOrEqual(300);
    await until(() => contexts[0]?.signal.aborted === true);
  });

  it("stays with a call for longer than a silence lasts, by heartbeats of both sides", async () => {
    await using watch = await ends.watch();
    const gate = Promise.withResolvers<void>();
    let inboxes: (string | undefined)[] = [];
    await using pair = await serving(ends, {
      async *unary(requests, { line }) {
        inboxes = [line.inbox, line.peerInbox];
        await gate.promise;
        yield* requests;
      },
    });
    const answer = pair.client.unary(one);
    await until(() => inboxes.length === 2);
    const isLong = () => inboxes.every((inbox) => heartbeatsOf(watch.seen, inbox) >= 4);
    await until(isLong, { timeoutMs: 15_000 });
    gate.resolve();
    expect(values([await answer])).toEqual([[1]]);
  });

  it.each(shapes)("is told that a server is unavailable which falls silent in %s", async (_name, call) => {
    const { contexts, echo } = hanging();
    await using pair = await serving(ends, echo);
    const failure = failureOf(ConnectError, call(pair.client));
    await until(() => contexts.length === 1);
    const [begun, begunTicks] = [performance.now(), tickedMs()];
    pair.server.link.fallSilent();
    expect(await failure).toMatchObject({ code: Code.Unavailable });
    expect(tickedMs() - begunTicks).toBeLessThan(4_500);
    expect(performance.now() - begun).toBeGreaterThan(2_000);
  });

  it("is told that a server is unavailable whose connection is gone", async () => {
    const { contexts, echo } = hanging();
    const pair = await serving(ends, echo);
    const failure = failureOf(ConnectError, pair.client.serverStream(one));
    await until(() => contexts.length === 1);
    const begun = tickedMs();
    await pair.connection.close();
    expect(await failure).toMatchObject({ code: Code.Unavailable });
    expect(tickedMs() - begun).toBeLessThan(4_500);
  });

  it("ends the call of a server that sends without credit, loses a frame or sends none", async () => {
    await using pair = await serving(ends, {
      async *serverStream(_requests, { outbox }) {
        outbox.add({ messages: 1_000, bytes: 1_000_000 });
        for (let sent = 0; sent < 1_000; sent++) yield { value: new Uint8Array(100_000) };
      },
      async *bidi(_requests, { line }) {
        line.nextSequence++;
        yield one;
      },
      async *unary(_requests, { line }) {
        line.send({ kind: 9 });
        yield one;
      },
    });
    expect(await failureOf(ConnectError, pair.client.unary(one))).toMatchObject({ code: Code.Internal });
    expect(await failureOf(ConnectError, pair.client.serverStream(one))).toMatchObject({ code: Code.Internal });
    expect(await failureOf(ConnectError, pair.client.bidi(sequence(one)))).toMatchObject({ code: Code.Unavailable });
  });
});
