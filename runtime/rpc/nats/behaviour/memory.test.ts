import type { BytesValue } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "#runtime/time/until.ts";
import { DEFAULT_TIMINGS } from "../call/timings.ts";
import { LARGEST_WINDOW_BYTES } from "../channel/credit.ts";
import { createNatsTransport } from "../client/transport.ts";
import { type EchoProcess, openEchoProcess } from "../testing/echo-process.ts";
import { COUNT_KEY, NUMBERED_BYTES } from "../testing/echo-program.ts";
import { EchoService } from "../testing/echo-service.ts";
import { type EchoWorld, openEchoWorld } from "../testing/echo-world.ts";

let world: EchoWorld;
beforeAll(async () => {
  world = await openEchoWorld();
});
afterAll(async () => world[Symbol.asyncDispose]());

const MIB = 1024 * 1024;
const COUNT = (512 * MIB) / NUMBERED_BYTES;
/** So many that the window is at its largest. */
const READ_BEFORE = 16;
const HELD_BACK_MS = DEFAULT_TIMINGS.silenceMs + 1_500;
/** The window, and what the machine of JavaScript takes besides. */
const MOST_GROWTH_BYTES = 32 * MIB;

async function openReader(service: string) {
  const bus = await world.connect();
  const client = createClient(EchoService, createNatsTransport(bus, { service }));
  return { bus, client };
}

/** The sender's resident and its JavaScript memory. */
async function memoryOf(sender: EchoProcess) {
  const { usage, produced } = await sender.memory();
  return { resident: usage.rss, own: usage.heapUsed + usage.external, produced };
}

/* Reader and sender are processes of their own, with the timings of production. */

test("BUS-2 a sender of 512 MiB whose reader reads nothing beyond the silence holds one window, and all comes in order afterwards", {
  timeout: 120_000,
}, async () => {
  const service = "memory";
  await using sender = await openEchoProcess(world, { role: "server", service });
  const { bus, client } = await openReader(service);
  const before = await memoryOf(sender);
  const answers = client.serverStream({}, { headers: { [COUNT_KEY]: String(COUNT) } })[Symbol.asyncIterator]();
  const numbers: number[] = [];
  while (numbers.length < READ_BEFORE) numbers.push(numberOf(await answers.next()));
  const startedAt = performance.now();
  const growth = { resident: 0, own: 0 };
  let produced = 0;
  await until(
    async () => {
      const held = await memoryOf(sender);
      growth.resident = Math.max(growth.resident, held.resident - before.resident);
      growth.own = Math.max(growth.own, held.own - before.own);
      produced = held.produced;
      return performance.now() - startedAt > HELD_BACK_MS;
    },
    { timeoutMs: 60_000, intervalMs: 200 },
  );
  expect(growth.resident).toBeLessThan(MOST_GROWTH_BYTES);
  expect(growth.own).toBeLessThan(MOST_GROWTH_BYTES);
  expect(produced).toBeLessThanOrEqual(READ_BEFORE + LARGEST_WINDOW_BYTES / NUMBERED_BYTES + 2);
  while (numbers.length < COUNT) numbers.push(numberOf(await answers.next()));
  expect(numbers).toEqual(Array.from({ length: COUNT }, (_, number) => number));
  expect((await memoryOf(sender)).produced).toBe(COUNT);
  expect([bus.connection.isClosed(), bus.connection.stats().inBytes > 512 * MIB]).toEqual([false, true]);
  await answers.return?.(undefined);
});

/** The number of a numbered message that came whole. */
function numberOf({ value }: IteratorResult<BytesValue>): number {
  return value?.value.length === NUMBERED_BYTES ? Buffer.from(value.value).readUInt32BE() : -1;
}
