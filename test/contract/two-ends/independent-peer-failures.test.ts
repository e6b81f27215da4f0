// A client written from docs/connect-over-nats/README.md alone against our server: calls that end before their time.

import type { ConnectRouter } from "@connectrpc/connect";
import { createInbox } from "nats";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { serveOnNats } from "#runtime/rpc/nats/server/server.ts";
import { EchoService } from "#runtime/rpc/nats/testing/echo-service.ts";
import { tickedMs } from "#runtime/time/testing/machine-time.ts";
import { until } from "#runtime/time/until.ts";
import { PeerClient } from "../independent-peer/client.ts";
import { PeerError } from "../independent-peer/peer-error.ts";
import { type BothEnds, failureOf, heartbeatsOf, one, openBothEnds, two, values } from "./testing/both-ends.ts";
import { hanging, plain, serving, streamed } from "./testing/our-server.ts";

const { unary, serverStream, clientStream, bidi } = EchoService.method;
const stack = new AsyncDisposableStack();
let ends: BothEnds;

beforeAll(async () => {
  ends = stack.use(await openBothEnds());
});
afterAll(() => stack.disposeAsync());

describe("a client by the document alone that gives up", () => {
  it("cancels a call without knowing who serves it, and one whose server it knows", async () => {
    const { contexts, echo } = hanging();
    await using pair = await serving(ends, echo);
    for (const method of [unary, serverStream]) {
      const controller = new AbortController();
      const call = pair.client.call(method, [one], { signal: controller.signal });
      const failure = failureOf(PeerError, call);
      await until(() => contexts.length > 0 && (method === unary || call.raw.line.peerInbox !== undefined));
      controller.abort();
      await until(() => contexts[0]?.signal.aborted === true);
      expect(await failure).toMatchObject({ code: "canceled", delivery: "UNKNOWN" });
      contexts.length = 0;
    }
  });

  it("cancels before its opening comes, and the call is not started", async () => {
    const { contexts, echo } = hanging();
    await using pair = await serving(ends, echo);
    const { connection, service } = pair;
    const inbox = createInbox();
    const answers = connection.subscribe(inbox);
    connection.publish(`toolbus.rpc.${service}.cancel`, inbox);
    connection.publish(`toolbus.rpc.${service}.toolbus.echo.v1.EchoService.Unary`, "", { reply: inbox });
    await pair.client.ask(clientStream, [one]);
    expect([contexts.length, answers.getReceived()]).toEqual([0, 0]);
  });

  it("sets a deadline, which the handler has too", async () => {
    const { contexts, echo } = hanging();
    await using pair = await serving(ends, echo);
    const failure = await failureOf(PeerError, pair.client.call(unary, [one], { timeoutMs: 300 }));
    expect(failure).toMatchObject({ code: "deadline_exceeded" });
    expect(contexts[0]?.timeoutMs()).toBeLessThanOrEqual(300);
    await until(() => contexts[0]?.signal.aborted === true);
  });

  it("knows at once that nobody serves, and that nothing was sent", async () => {
    const client = new PeerClient(await ends.connectPeer(), "nobody");
    const begun = tickedMs();
    expect(await failureOf(PeerError, client.ask(unary, [one]))).toMatchObject({
      code: "unavailable",
      delivery: "NOT_SENT",
    });
    expect(tickedMs() - begun).toBeLessThan(1_000);
  });

  it("is refused when its request comes too late, or says in no readable way when it was sent", async () => {
    const { contexts, echo } = hanging();
    await using pair = await serving(ends, echo);
    const refusalOf = (sent: string) => failureOf(PeerError, pair.client.ask(unary, [one], { sent, timeoutMs: 900 }));
    expect(await refusalOf("peer 50000")).toMatchObject({ code: "deadline_exceeded", delivery: "UNKNOWN" });
    expect(await refusalOf("peer 45000")).toMatchObject({ code: "deadline_exceeded", delivery: "NOT_SENT" });
    expect(await refusalOf("soon")).toMatchObject({ code: "invalid_argument", delivery: "NOT_SENT" });
    expect(contexts).toHaveLength(1);
  });

  it("stays with a call for longer than a silence lasts, by heartbeats of both sides", async () => {
    await using watch = await ends.watch();
    const { seen } = watch;
    const gate = Promise.withResolvers<void>();
    await using pair = await serving(ends, {
      ...plain,
      async unary(request) {
        await gate.promise;
        return request;
      },
    });
    const call = pair.client.call(unary, [one]);
    const answer = Array.fromAsync(call);
    const { line } = call.raw;
    await until(() => heartbeatsOf(seen, line.inbox) >= 4 && heartbeatsOf(seen, line.peerInbox) >= 4, {
      timeoutMs: 15_000,
    });
    gate.resolve();
    expect(values(await answer)).toEqual([[1]]);
  });

  it.each([
    ["a unary call", unary],
    ["a stream", serverStream],
  ])("falls silent in %s, and our handler is aborted", async (_name, method) => {
    const { contexts, echo } = hanging();
    await using pair = await serving(ends, echo);
    const call = pair.client.call(method, [one]);
    const failure = failureOf(PeerError, call);
    await until(() => contexts.length === 1);
    const [begun, begunTicks] = [performance.now(), tickedMs()];
    pair.client.link.fallSilent();
    await until(() => contexts[0]?.signal.aborted === true, { timeoutMs: 15_000 });
    expect(tickedMs() - begunTicks).toBeLessThan(5_000);
    expect(performance.now() - begun).toBeGreaterThan(2_000);
    expect(await failure).toMatchObject({ code: "unavailable", delivery: "UNKNOWN" });
  });

  it("sends without credit, loses a frame or sends none, and the call is ended", async () => {
    await using pair = await serving(ends, {
      ...plain,
      async *bidi(_requests, context) {
        await new Promise<void>((resolve) => context.signal.addEventListener("abort", () => resolve()));
      },
    });
    const ofMischief = async (mischief: (call: ReturnType<typeof begin>) => void) => {
      const call = begin();
      const failure = failureOf(PeerError, call);
      await until(() => call.raw.line.peerInbox !== undefined);
      mischief(call);
      return failure;
    };
    const begin = () => {
      const gate = Promise.withResolvers<void>();
      const requests = async function* () {
        await gate.promise;
        for (let sent = 0; sent < 65; sent++) yield one;
      };
      return { ...pair.client.call(bidi, requests(), streamed), send: gate.resolve };
    };
    const greedy = await ofMischief(({ raw, send }) => {
      raw.outbox.add({ messages: 1_000, bytes: 1_000_000 });
      send();
    });
    expect(greedy).toMatchObject({ code: "internal" });
    const lossy = await ofMischief(({ raw, send }) => {
      raw.line.nextSequence++;
      send();
    });
    expect(lossy).toMatchObject({ code: "unavailable" });
    const strange = await ofMischief(({ raw }) => raw.line.send({ kind: 9 }));
    expect(strange).toMatchObject({ code: "internal" });
  });

  it("is answered by our server while that stops, and refused afterwards at once", async () => {
    const gate = Promise.withResolvers<void>();
    await using pair = await serving(ends, {
      ...plain,
      async *bidi(requests) {
        await gate.promise;
        yield* requests;
      },
    });
    const call = pair.client.call(bidi, [one], streamed);
    const answers = Array.fromAsync(call);
    await until(() => call.raw.line.peerInbox !== undefined);
    const stopped = pair[Symbol.asyncDispose]();
    const isRefused = async () => {
      const [outcome] = await Promise.allSettled([pair.client.ask(unary, [one])]);
      return outcome.status === "rejected" && (outcome.reason as PeerError).delivery === "NOT_SENT";
    };
    await until(isRefused);
    gate.resolve();
    expect(values(await answers)).toEqual([[1]]);
    await stopped;
  });

  it("loses its calls with the broker, and makes others when that is back", async () => {
    await using apart = await openBothEnds();
    const { contexts, echo } = hanging();
    const routes = (router: ConnectRouter) =>
      router.service(EchoService, { ...echo, clientStream: plain.clientStream });
    await using _server = await serveOnNats(apart.bus, { service: "apart", instance: "one", routes });
    const client = new PeerClient(await apart.connectPeer(), "apart");
    const failure = failureOf(PeerError, client.call(serverStream, [one]));
    await until(() => contexts.length === 1);
    await apart.bus.server.kill();
    expect(await failure).toMatchObject({ code: "unavailable", delivery: "UNKNOWN" });
    await until(() => contexts[0]?.signal.aborted === true, { timeoutMs: 10_000 });
    await apart.bus.server.restart();
    const isServed = async () => {
      const [outcome] = await Promise.allSettled([client.ask(clientStream, [two])]);
      return outcome.status === "fulfilled";
    };
    await until(isServed, { timeoutMs: 15_000 });
  });

  it("finds our server among the micro services, with an endpoint for each method", async () => {
    await using pair = await serving(ends, plain);
    const infos = await Array.fromAsync(await pair.connection.services.client().info(pair.service));
    expect(infos).toHaveLength(1);
    expect(infos[0]?.endpoints).toContainEqual(
      expect.objectContaining({
        name: "toolbus_echo_v1_EchoService_Unary",
        subject: `toolbus.rpc.${pair.service}.toolbus.echo.v1.EchoService.Unary`,
        queue_group: pair.service,
      }),
    );
  });
});
