import { setTimeout } from "node:timers/promises";
import { type ConnectRouter, createClient } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { callPatience } from "../../../bus/link/call-patience.ts";
import { connectError } from "../../../failure/connect.ts";
import { createNatsTransport } from "../client/transport.ts";
import { serveOnNats } from "../server/server.ts";
import { EchoService } from "../testing/echo-service.ts";
import { openEchoWorld } from "../testing/echo-world.ts";

test("BUS-6 a service that is asked by one that waited for the bus waits for what is left only", async () => {
  await using stack = new AsyncDisposableStack();
  const world = stack.use(await openEchoWorld());
  const heard: number[] = [];
  const serve = async (service: string, work: () => Promise<void>) => {
    const unary = () => work().then(() => ({}));
    const routes = (router: ConnectRouter) => void router.service(EchoService, { unary });
    stack.use(await serveOnNats(await world.connect(), { service, routes }));
    return createClient(EchoService, createNatsTransport(await world.connect(), { service }));
  };
  const inner = await serve("inner", async () => void heard.push(callPatience.leftMs));
  const waiting = await serve("waiting", async () => {
    await setTimeout(300);
    throw connectError("unavailable", "the bus does not answer", { reason: "BUS_UNAVAILABLE" });
  });
  const outer = await serve("outer", async () => {
    await inner.unary({});
    callPatience.spend(performance.now() - 4_000);
    await inner.unary({});
    await expect(waiting.unary({})).rejects.toThrow("the bus does not answer");
    await inner.unary({});
  });
  await outer.unary({});
  const [before = 0, after = 0, afterRefusal = 0] = heard;
  expect(before - after).toBeGreaterThanOrEqual(4_000);
  expect(after - afterRefusal).toBeGreaterThanOrEqual(290);
  expect(afterRefusal).toBeGreaterThan(1_000);
  expect(callPatience.leftMs).toBe(Number.POSITIVE_INFINITY);
});
