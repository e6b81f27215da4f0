import { Code, ConnectError, createClient, type HandlerContext } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "#runtime/time/until.ts";
import { deliveryOf } from "../call/delivery.ts";
import { createNatsTransport } from "../client/transport.ts";
import { EchoService } from "../testing/echo-service.ts";
import { byte, bytes, failureOf, firstBytes, openStreams } from "../testing/echo-streams.ts";
import { type EchoWorld, openEchoWorld } from "../testing/echo-world.ts";

let world: EchoWorld;
beforeAll(async () => {
  world = await openEchoWorld();
});
afterAll(async () => world[Symbol.asyncDispose]());

describe("the end of a stream over NATS", () => {
  test("BUS-2 an error ends a stream after the messages before it, with its metadata", async () => {
    await using echoing = await openStreams(world, {
      async *serverStream(_request, context) {
        yield* bytes(3);
        context.responseTrailer.set("x-end", "early");
        throw new ConnectError("out of bytes", Code.OutOfRange, { "x-more": "1" });
      },
    });
    const seen: number[] = [];
    const error = await failureOf(echoing.client.serverStream(byte(0)), (n) => seen.push(n));
    expect(seen).toEqual([0, 1, 2]);
    expect([error.code, error.rawMessage]).toEqual([Code.OutOfRange, "out of bytes"]);
    expect([error.metadata.get("x-end"), error.metadata.get("x-more")]).toEqual(["early", "1"]);
    expect(deliveryOf(error)).toBeUndefined();
  });

  test("BUS-2 an implementation may answer a client stream before it has read it", async () => {
    await using echoing = await openStreams(world, {
      async clientStream() {
        throw new ConnectError("I do not read", Code.FailedPrecondition);
      },
    });
    const error = await echoing.client.clientStream(bytes(100_000)).catch((thrown) => thrown);
    expect(error.code).toBe(Code.FailedPrecondition);
  });

  test("BUS-2 a caller that aborts aborts the handler's signal, and the handler's loop ends", async () => {
    let running: HandlerContext | undefined;
    let isOver = false;
    await using echoing = await openStreams(world, {
      async *serverStream(_request, context) {
        running = context;
        try {
          for (;;) yield byte(1);
        } finally {
          isOver = true;
        }
      },
    });
    const controller = new AbortController();
    const answers = echoing.client.serverStream(byte(0), { signal: controller.signal });
    const error = await failureOf(answers, () => controller.abort());
    expect(error.code).toBe(Code.Canceled);
    await until(() => running?.signal.aborted && isOver);
  });

  test("BUS-2 a deadline ends a stream on both sides", async () => {
    let running: HandlerContext | undefined;
    await using echoing = await openStreams(world, {
      async *serverStream(_request, context) {
        running = context;
        yield byte(1);
        await new Promise((resolve) => context.signal.addEventListener("abort", resolve));
        context.signal.throwIfAborted(); // whichever side's clock is first
      },
    });
    const error = await failureOf(echoing.client.serverStream(byte(0), { timeoutMs: 100 }));
    expect(error.code).toBe(Code.DeadlineExceeded);
    expect(["UNKNOWN", undefined]).toContain(deliveryOf(error)); // undefined: the server said so itself
    await until(() => running?.signal.aborted);
  });

  test("BUS-2 a source of requests that fails ends the call on both sides", async () => {
    let running: HandlerContext | undefined;
    await using echoing = await openStreams(world, {
      async clientStream(requests, context) {
        running = context;
        return byte((await firstBytes(requests)).length);
      },
    });
    async function* broken() {
      yield byte(1);
      await until(() => running);
      throw new ConnectError("no more", Code.DataLoss);
    }
    const error = await echoing.client.clientStream(broken()).catch((thrown) => thrown);
    expect(error.code).toBe(Code.DataLoss);
    await until(() => running?.signal.aborted);
  });

  test("BUS-2 no responder is unavailable at once for a stream too", async () => {
    const client = createClient(EchoService, createNatsTransport(await world.connect(), { service: "nobody" }));
    for (const call of [() => client.serverStream(byte(1)), () => client.bidi(bytes(3))]) {
      const error = await failureOf(call());
      expect([error.code, deliveryOf(error)]).toEqual([Code.Unavailable, "NOT_SENT"]);
    }
  });
});
