import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { openTestServer } from "../../../test/harness/bus.ts";
import { Failure } from "../../failure/failure.ts";
import { until } from "../../time/until.ts";
import { textCodec } from "../buckets/bucket.ts";
import { createBucket } from "../buckets/stored-bucket.ts";
import { type BusStatus, openBus } from "../bus.ts";
import { findNatsServer } from "../nats-server/find/find-nats-server.ts";
import { appendFenced, lastOf } from "../streams/append/append.ts";
import { callPatience } from "./call-patience.ts";
import { createStorage } from "./storage.ts";

/** A nats-server with a disk of its own of that size, which only its process sees. */
async function serverOnSmallDisk(stack: AsyncDisposableStack, megabytes: number): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "toolbus-test-disk-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const script = join(directory, "nats-server");
  const mount = `mount -t tmpfs -o size=${megabytes}m tmpfs "$dir/store" && head -c 8m /dev/zero > "$dir/store/ballast"`;
  const lines = [
    "#!/bin/sh",
    `case "$*" in *.conf*) ;; *) exec ${await findNatsServer()} "$@" ;; esac`,
    'for word in "$@"; do case "$word" in *.conf) dir=$(dirname "$word") ;; esac; done',
    'mkdir -p "$dir/store"',
    `exec unshare --user --map-root-user --mount sh -c 'dir=$0; ${mount}; exec ${await findNatsServer()} "$@"' "$dir" "$@"`,
  ];
  await writeFile(script, lines.join("\n"));
  await chmod(script, 0o755);
  return script;
}

test("BUS-6 storage-2 on a full disk a call ends in time and says so, and what is stored is still read", async () => {
  await using stack = new AsyncDisposableStack();
  const binary = await serverOnSmallDisk(stack, 24);
  const server = stack.use(await openTestServer({ binary }));
  const told: BusStatus["kind"][] = [];
  const onStatus = ({ kind }: BusStatus) => void told.push(kind);
  const bus = stack.use(await openBus({ url: server.url, login: server.login, name: "test", onStatus }));
  const payload = new Uint8Array(500_000);
  const append = (index: number) =>
    callPatience.run(() => appendFenced(bus, { subject: `toolbus.run.${index}`, expectedLastSequence: 0, payload }));
  const fill = async () => {
    for (let index = 0; index < 100; index++) await append(index);
  };
  const failure = await fill().then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(failure).toMatchObject({ code: "unavailable", message: expect.stringContaining("disk is full") });
  expect(bus.link.storage.fault).toContain("disk is full");
  expect((await callPatience.run(() => lastOf(bus, "toolbus.run.0")))?.data).toHaveLength(payload.length);
  expect(told).toContain("stalled");
  await rm(`/proc/${server.pid}/root${server.directory}/store/ballast`); // a stream that failed to write goes on failing until a restart
  const create = { bucket: "toolbus_spaces", prefix: "", codec: textCodec } as const;
  await callPatience.run(() => createBucket(bus, create).create("room", "there is room"));
}, 90_000);

test("BUS-6 storage-5 while nothing is stored, calls wait less, and what a service does by itself waits as long as it takes", async () => {
  const storage = createStorage({});
  let isFull = false;
  const probe = () => (isFull ? Promise.reject(new Error("timeout")) : Promise.resolve());
  await using _ = storage.watch(probe);
  isFull = true;
  await until(() => storage.fault !== undefined, { timeoutMs: 20_000 });
  expect(callPatience.run(() => storage.patienceMs)).toBe(1_000);
  expect(storage.patienceMs).toBe(Number.POSITIVE_INFINITY);
}, 30_000);

test.each([
  ["one answer came late, as to a process that was frozen", 20_000, new Error("timeout")],
  ["there was no server, for however long", 100, new Failure("unavailable", "lost", { reason: "BUS_UNAVAILABLE" })],
])("BUS-6 storage-1 nothing is known of what is stored when %s", async (_what, afterMs, error) => {
  vi.useFakeTimers();
  try {
    const storage = createStorage({});
    const faults: unknown[] = [];
    storage.onChange((fault) => faults.push(fault));
    let count = 0;
    const isFailing = () => count > 1 && (afterMs < 1_000 || count === 2);
    const probe = () => {
      count += 1;
      return isFailing() ? new Promise((_, reject) => setTimeout(reject, afterMs, error)) : Promise.resolve();
    };
    await using _ = storage.watch(probe);
    await vi.advanceTimersByTimeAsync(40_000);
    expect(count).toBeGreaterThan(8);
    expect(faults).toEqual([]);
  } finally {
    vi.useRealTimers();
  }
});
