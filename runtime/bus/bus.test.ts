import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { fileURLToPath } from "node:url";
import { jetstreamManager } from "@nats-io/jetstream";
import { describe, expect, test } from "vitest";
import { freePorts } from "../../examples/free-port.ts";
import { openTestBus, openTestServer } from "../../test/harness/bus.ts";
import { openChildProcess } from "../lifecycle/child-process/child-process.ts";
import { createSelfSigned } from "../rpc/http/testing/self-signed.ts";
import { tickedMs } from "../time/testing/machine-time.ts";
import { until } from "../time/until.ts";
import { type BusStatus, openBus } from "./bus.ts";
import { connectOnce } from "./credentials/connect.ts";
import type { BusLogin } from "./credentials/login.ts";
import { createSeed } from "./credentials/nkey/nkey.ts";
import { removeStores } from "./credentials/remove-stores.ts";
import { BUCKETS, formatKey, OBJECT_STORES, STREAMS, storeFormat } from "./declarations/declarations.ts";
import { configsFromDeclarations } from "./declarations/declared-config.ts";
import { differences, ensureDeclared } from "./declarations/ensure-declared.ts";
import { streamOfSubject } from "./declarations/streams-of-subjects.ts";
import { lastOf } from "./streams/append/append.ts";

describe("what is declared", () => {
  const configs = configsFromDeclarations(1).map((config) => [config.name, config] as const);

  test("the walk finds all of it", () => {
    const count = [STREAMS, BUCKETS, OBJECT_STORES].flatMap((declarations) => Object.keys(declarations)).length;
    expect(configs).toHaveLength(count);
    expect(count).toBeGreaterThanOrEqual(14);
  });

  test.each(configs)("%s cannot grow without bound", (_name, config) => {
    expect(config.max_bytes).toBeGreaterThan(0);
    expect(config.max_msg_size).toBeGreaterThan(0);
    expect(config.duplicate_window).toBeGreaterThan(0);
    const forgets = config.max_age > 0 || config.max_msgs_per_subject > 0;
    expect(forgets || config.discard === "new").toBe(true);
  });

  test("the logs of runs are refused when full, never discarded", () => {
    expect(STREAMS.TOOLBUS_RUNS).toMatchObject({ discard: "new", retention: "limits" });
    expect(STREAMS.TOOLBUS_RUNS.maxAgeMs).toBeUndefined();
    expect(STREAMS.TOOLBUS_RUNS.maxMessagesPerSubject).toBeUndefined();
    expect(STREAMS.TOOLBUS_WAKES).toMatchObject({ retention: "workqueue", discard: "new" });
  });

  test("all of it fits into the one-machine server", () => {
    const total = configs.reduce((sum, [, config]) => sum + config.max_bytes, 0);
    expect(total).toBeLessThan(64 * 1024 ** 3);
  });

  test("each subject has its stream", () => {
    expect(streamOfSubject("toolbus.run.r1")).toBe("TOOLBUS_RUNS");
    expect(streamOfSubject("toolbus.audit.router.call")).toBe("TOOLBUS_AUDIT");
    expect(streamOfSubject("$KV.toolbus_owners.a.b")).toBe("KV_toolbus_owners");
    expect(() => streamOfSubject("toolbus.elsewhere.x")).toThrow(/no declared stream/);
  });
});

describe("declaring", () => {
  test("is done by eight processes at once, and each finds it done as declared", async () => {
    await using server = await openTestServer();
    const { url, login } = server;
    const script = fileURLToPath(new URL("./testing/declarer.ts", import.meta.url));
    const processes = Array.from({ length: 8 }, () => fork(script, [JSON.stringify({ url, login })], { execArgv: [] }));
    await Promise.all(processes.map((one) => once(one, "message")));
    const exits = processes.map((one) => once(one, "exit"));
    for (const one of processes) one.send("go");
    expect((await Promise.all(exits)).map(([code]) => code)).toEqual(processes.map(() => 0));
    const connection = await connectOnce({ url, login, name: "test" });
    const manager = await jetstreamManager(connection);
    for (const declared of configsFromDeclarations(1)) {
      const { config } = await manager.streams.info(declared.name);
      expect(differences(config, declared), declared.name).toEqual([]);
    }
    await connection.close();
  });

  test("brings what differs up to date, and keeps the number of replicas that an operator chose", async () => {
    await using bus = await openTestBus();
    const { config } = await bus.manager.streams.info("TOOLBUS_AUDIT");
    await bus.manager.streams.update("TOOLBUS_AUDIT", { ...config, max_bytes: 1_048_576 });
    await ensureDeclared(bus.manager);
    expect((await bus.manager.streams.info("TOOLBUS_AUDIT")).config.max_bytes).toBe(STREAMS.TOOLBUS_AUDIT.maxBytes);
  });

  test("says which change cannot be applied, and what to do", async () => {
    await using server = await openTestServer();
    const { url, login } = server;
    const connection = await connectOnce({ url, login, name: "test" });
    const manager = await jetstreamManager(connection);
    await manager.streams.add({ name: "TOOLBUS_RUNS", subjects: ["toolbus.run.>"], retention: "workqueue" });
    await connection.close();
    const failure = await openBus({ ...server, name: "test" }).catch((error: Error) => error);
    expect(failure).toMatchObject({ code: "failed_precondition", kind: "declaration_refused" });
    expect((failure as Error).message).toMatch(/TOOLBUS_RUNS cannot change .*retention/);
  });

  test("what another release has stored is refused at start, in words, unless it is nothing; and can be deleted", async () => {
    await using server = await openTestServer();
    const { url, login } = server;
    const mark = async (format: string | undefined) => {
      await using bus = await openBus({ ...server, name: "test" });
      await bus.jetstream.publish("toolbus.run.r", "of some release");
      const { config } = await bus.manager.streams.info("TOOLBUS_RUNS");
      const { [formatKey]: _, ...others } = config.metadata ?? {};
      const metadata = { ...others, ...(format !== undefined && { [formatKey]: format }) };
      await bus.manager.streams.update("TOOLBUS_RUNS", { ...config, metadata });
    };
    const failure = () =>
      openBus({ ...server, name: "test" }).then(
        (bus) => bus[Symbol.asyncDispose](),
        (error: unknown) => error,
      );
    for (const [format, words] of [
      [undefined, `format 1, and this release reads format ${storeFormat}. .*\\btoolbus up --reset\\b`],
      [String(storeFormat + 1), "A newer release has written it"],
    ] as const) {
      await mark(format);
      expect(await failure()).toMatchObject({
        code: "failed_precondition",
        kind: "store_format",
        message: expect.stringMatching(`TOOLBUS_RUNS has .*${words}`),
      });
      expect(await removeStores({ url, login })).toContain("TOOLBUS_RUNS");
      expect(await failure()).toBeUndefined();
    }
  });

  test("an empty store without a mark is taken over", async () => {
    await using bus = await openTestBus();
    const { config } = await bus.manager.streams.info("KV_toolbus_memory");
    const { [formatKey]: _, ...metadata } = config.metadata ?? {};
    await bus.manager.streams.update("KV_toolbus_memory", { ...config, metadata });
    await ensureDeclared(bus.manager);
    const adopted = (await bus.manager.streams.info("KV_toolbus_memory")).config;
    expect(adopted.metadata?.[formatKey]).toBe(String(storeFormat));
  });

  test("a store whose files cannot be made is not said to be another's", async () => {
    await using server = await openTestServer();
    const folder = join(server.directory, "store", "jetstream", "$G", "streams");
    await mkdir(dirname(folder), { recursive: true });
    await writeFile(folder, "in the place of a folder");
    const failure = openBus({ ...server, name: "test" });
    await expect(failure).rejects.toThrow(/cannot be created: .*often the disk is full/);
  });

  test("more replicas than there are servers is refused", async () => {
    await using server = await openTestServer();
    const opening = openBus({ ...server, name: "test", replicas: 3 });
    await expect(opening).rejects.toMatchObject({ code: "failed_precondition", kind: "declaration_refused" });
  });
});

/** Speaks just enough of the protocol to be a server of some version. */
async function openFakeServer(info: object): Promise<AsyncDisposable & { url: string }> {
  const server = createServer((socket) => {
    socket.on("error", () => {}); // the client leaves as it likes
    socket.write(
      `INFO ${JSON.stringify({ server_id: "x", max_payload: 1_048_576, headers: true, proto: 1, ...info })}\r\n`,
    );
    socket.on("data", (data) => {
      for (const _ of data.toString().matchAll(/PING\r\n/g)) socket.write("PONG\r\n");
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `nats://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => void server.close(),
  };
}

const login: BusLogin = { name: "admin", seed: createSeed() };

describe("opening", () => {
  test("refuses an old server, and says what was found, what is needed and what to do", async () => {
    await using old = await openFakeServer({ version: "2.10.29", jetstream: true });
    const failure = await openBus({ url: old.url, login, name: "test" }).catch((error: Error) => error);
    expect(failure).toMatchObject({ code: "failed_precondition", kind: "nats_server_too_old" });
    for (const part of ["2.10.29", "2.11.0", "Upgrade"]) expect((failure as Error).message).toContain(part);
  });

  test("refuses a server without JetStream", async () => {
    await using bare = await openFakeServer({ version: "2.15.1" });
    const opening = openBus({ url: bare.url, login, name: "test" });
    await expect(opening).rejects.toMatchObject({ code: "failed_precondition", kind: "jetstream_disabled" });
  });

  test("SEC-1 refuses at once a key that the server does not know, and says what it lacks", async () => {
    await using server = await openTestServer();
    const opening = openBus({ ...server, login: { name: "nobody", seed: createSeed() }, name: "test" });
    await expect(opening).rejects.toMatchObject({
      code: "unauthenticated",
      message: expect.stringMatching(/does not know the key of nobody: .*toolbus bus credentials/),
    });
  });

  test("waits for a server that gave it too little time to sign in: that says nothing of its key", async () => {
    await using server = await openTestServer();
    let connections = 0;
    const busy = createServer((client) => {
      connections += 1;
      const behind = connections === 1 ? undefined : connect(Number(new URL(server.url).port), "127.0.0.1");
      for (const socket of [client, behind]) socket?.on("error", () => {}); // either end may go at any time
      if (behind !== undefined) return void client.pipe(behind).pipe(client);
      client.write(
        'INFO {"server_id":"busy","version":"2.12.0","max_payload":1048576,"proto":1,"nonce":"bm9uY2U"}\r\n',
      );
      client.once("data", () => client.end("-ERR 'Authentication Timeout'\r\n"));
    }).listen(0, "127.0.0.1");
    await once(busy, "listening");
    const statuses: BusStatus[] = [];
    const url = `nats://127.0.0.1:${(busy.address() as AddressInfo).port}`;
    const onStatus = (status: BusStatus) => void statuses.push(status);
    await using _ = await openBus({ url, login: server.login, name: "slow", onStatus });
    expect(statuses[0]).toMatchObject({ kind: "waiting", reason: expect.stringContaining("Authentication Timeout") });
    busy.close();
  });

  test("waits for a server that comes later, telling what it waits for, until its signal aborts", async () => {
    await using server = await openTestServer();
    await server.kill();
    const told: BusStatus[] = [];
    const opening = openBus({ ...server, name: "test", onStatus: (status) => void told.push(status) });
    await until(() => told.some((status) => status.kind === "waiting"));
    await server.restart();
    await using bus = await opening;
    expect(bus.link.isUp).toBe(true);
    await server.kill();
    const end = new AbortController();
    const hopeless = openBus({ ...server, name: "test", signal: end.signal });
    end.abort(new Error("enough"));
    await expect(hopeless).rejects.toThrow("enough");
  });
});

describe("an open bus", () => {
  test("comes back by itself after each restart of the server, and tells", async () => {
    const told: string[] = [];
    await using bus = await openTestBus({ onStatus: (status) => void told.push(status.kind) });
    let losses = 0;
    bus.link.onLoss(() => {
      losses += 1;
    });
    for (let round = 1; round <= 3; round++) {
      await bus.server.kill();
      await until(() => !bus.link.isUp);
      await bus.server.restart();
      await bus.link.whenUp(AbortSignal.timeout(15_000));
      expect(losses).toBe(round);
    }
    await bus.connection.flush();
    expect(told.filter((kind) => kind === "disconnected").length).toBeGreaterThanOrEqual(3);
    expect(told.filter((kind) => kind === "reconnected").length).toBeGreaterThanOrEqual(3);
  });

  test("closes in time when its server is gone", async () => {
    await using local = await openTestBus();
    const bus = await local.connect();
    await local.server.kill();
    const startedAt = tickedMs();
    await bus[Symbol.asyncDispose]();
    expect(tickedMs() - startedAt).toBeLessThan(3_000);
    await expect(bus.link.whenUp()).rejects.toMatchObject({ reason: "BUS_UNAVAILABLE" });
  });

  test("stores keep what was written across a kill of the server", async () => {
    await using bus = await openTestBus();
    await bus.jetstream.publish("$KV.toolbus_memory.a.b", "kept");
    const results = await bus.objectStore("toolbus_results");
    await results.putBlob({ name: "digest" }, new Uint8Array(3 * 1024 * 1024));
    await bus.server.kill();
    await bus.server.restart();
    await bus.link.whenUp();
    expect((await lastOf(bus, "$KV.toolbus_memory.a.b"))?.string()).toBe("kept");
    expect((await results.getBlob("digest"))?.length).toBe(3 * 1024 * 1024);
  });
});

test("SEC-1 a server that was named with tls:// and speaks without TLS is sent nothing", async () => {
  await using server = await openTestServer();
  const { url, login } = server;
  const secure = { url: url.replace("nats:", "tls:"), login, name: "test" };
  const outcome = connectOnce(secure).then((connection) => connection.close().then(() => "connected"), String);
  expect(await outcome).toMatch(/server does not support 'tls'/);
});

test.each([
  ["127.0.0.1", "connected"],
  ["localhost", /altnames/],
])("SEC-1 a server with TLS is whom its certificate names: %s", async (host, says) => {
  await using server = await openTlsServer();
  const before = getCACertificates("default");
  setDefaultCACertificates([server.cert]);
  try {
    const connecting = connectOnce({ url: `tls://${host}:${server.port}`, login, name: "test" });
    expect(await connecting.then((connection) => connection.close().then(() => "connected"), String)).toMatch(says);
  } finally {
    setDefaultCACertificates(before);
  }
});

/** With a certificate for 127.0.0.1. */
async function openTlsServer() {
  const directory = await mkdtemp(join(tmpdir(), "toolbus-tls-"));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const { cert, key } = createSelfSigned();
  const [certFile, keyFile] = [join(directory, "cert.pem"), join(directory, "key.pem")];
  await Promise.all([writeFile(certFile, cert), writeFile(keyFile, key)]);
  const [port] = await freePorts(1);
  const args = ["-a", "127.0.0.1", "-p", `${port}`, "--tls", "--tlscert", certFile, "--tlskey", keyFile];
  stack.use(await openChildProcess({ command: process.env.TOOLBUS_NATS_SERVER!, args, inputGraceMs: 0 }));
  await until(async () => {
    const socket = connect(port!, "127.0.0.1");
    return once(socket, "connect").then(
      () => socket.destroy(),
      () => undefined,
    );
  });
  const owned = stack.move();
  return { port: port!, cert: String(cert), [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

test("works on a cluster of three, with three copies of each store", { timeout: 60_000 }, async () => {
  const directory = await mkdtemp(join(tmpdir(), "toolbus-cluster-"));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const ports = await freePorts(6);
  const routes = ports.slice(3).map((port) => `nats://127.0.0.1:${port}`);
  for (let node = 0; node < 3; node++) {
    const cluster = ["--cluster_name", "c", "--cluster", routes[node]!, "--routes", routes.join(",")];
    const own = ["-a", "127.0.0.1", "-p", `${ports[node]}`, "-n", `n${node}`, "-js", "-sd", join(directory, `${node}`)];
    stack.use(
      await openChildProcess({
        command: process.env.TOOLBUS_NATS_SERVER!,
        args: [...own, ...cluster],
        inputGraceMs: 0,
      }),
    );
  }
  const url = ports
    .slice(0, 3)
    .map((port) => `nats://127.0.0.1:${port}`)
    .join(",");
  const buses = await Promise.all([1, 2, 3].map(() => openBus({ url, login, name: "test", replicas: 3 })));
  for (const bus of buses) stack.use(bus);
  expect((await buses[0]!.manager.streams.info("TOOLBUS_RUNS")).config.num_replicas).toBe(3);
});
