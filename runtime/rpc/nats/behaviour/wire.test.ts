import { create, toBinary } from "@bufbuild/protobuf";
import { BytesValueSchema } from "@bufbuild/protobuf/wkt";
import { Code, createClient, type HandlerContext } from "@connectrpc/connect";
import { headers, type Msg, type NatsConnection } from "@nats-io/nats-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AgentService, ListAgentsResponseSchema } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { until } from "#runtime/time/until.ts";
import { deliveryOf } from "../call/delivery.ts";
import { CallMux } from "../channel/mux.ts";
import { cancelSubjectOf } from "../channel/subjects.ts";
import { createNatsTransport } from "../client/transport.ts";
import { bytesFromCredit, bytesFromFrame, FrameFlag, FrameKind, parseCredit, parseFrame } from "../frame/frame.ts";
import { serveOnNats } from "../server/server.ts";
import { failureOf, readAll } from "../testing/echo-outcome.ts";
import { EchoService } from "../testing/echo-service.ts";
import { type EchoWorld, openEchoWorld } from "../testing/echo-world.ts";

/* One end is ours; the other speaks the frames by hand, to do what ours never does. */

let world: EchoWorld;
let peer: NatsConnection;
beforeAll(async () => {
  world = await openEchoWorld();
  peer = (await world.connect()).connection;
});
afterAll(async () => world[Symbol.asyncDispose]());

const METHOD = "toolbus.echo.v1.EchoService";
let lastService = 0;

function nameService(): string {
  lastService += 1;
  return `wire-${lastService}`;
}

async function openClient(service: string) {
  return createClient(EchoService, createNatsTransport(await world.connect(), { service }));
}

/** A header block as it is, which the library would not send. */
function rawHeaders(line: string) {
  return Object.assign(headers(), { encode: () => Buffer.from(`NATS/1.0\r\n${line}\r\n\r\n`) });
}

/** Answers the openings of one method by hand. */
async function answerByHand(service: string, method: string, answer: (message: Msg, count: number) => void) {
  let count = 0;
  const subscription = peer.subscribe(`toolbus.rpc.${service}.${METHOD}.${method}`, {
    callback: (_error, message) => {
      count += 1;
      answer(message, count);
    },
  });
  await peer.flush();
  return { subscription, count: () => count };
}

const refusal = bytesFromFrame(FrameKind.error, 0, 0, Buffer.from('{"code":"unavailable","message":"I am leaving"}'));

describe("a client", () => {
  test("BUS-2 repeats a call that an instance refused before starting it, on another", async () => {
    const service = nameService();
    const hand = await answerByHand(service, "Unary", (message, count) => {
      const notSent = headers();
      notSent.set("Rpc-Delivery", "NOT_SENT");
      if (count < 3) message.respond(refusal, { headers: notSent });
      else message.respond(bytesFromFrame(FrameKind.data, FrameFlag.end, 0));
    });
    const client = await openClient(service);
    expect((await client.unary({})).value).toHaveLength(0);
    expect(hand.count()).toBe(3);
  });

  test("BUS-2 repeats a call that was refused as late, and sends it only to whoever shows himself", async () => {
    const service = nameService();
    const openings: Msg[] = [];
    const rest = Promise.withResolvers<Msg>();
    const inbox = `_INBOX.test.late.${service}`;
    peer.subscribe(inbox, { callback: (_error, message) => rest.resolve(message) });
    await answerByHand(service, "Unary", (message, count) => {
      openings.push(message);
      const notSent = headers();
      notSent.set("Rpc-Delivery", "NOT_SENT");
      const late = bytesFromFrame(FrameKind.error, 0, 0, Buffer.from('{"code":"deadline_exceeded","message":"late"}'));
      const credit = bytesFromCredit({ messages: 1, bytes: 65_536 });
      if (count === 1) message.respond(late, { headers: notSent });
      else message.respond(bytesFromFrame(FrameKind.credit, 0, 0, credit), { reply: inbox });
    });
    const client = await openClient(service);
    const call = client.unary({ value: new Uint8Array([7]) }, { timeoutMs: 5_000 });
    const frame = parseFrame((await rest.promise).data);
    expect([openings[1]?.data.length, openings[1]?.headers?.get("Rpc-More")]).toEqual([0, "1"]);
    expect([frame?.kind, frame?.flags, frame?.body.at(-1)]).toEqual([FrameKind.data, FrameFlag.end, 7]);
    peer.publish(openings[1]?.reply ?? "", bytesFromFrame(FrameKind.data, FrameFlag.end, 1));
    expect((await call).value).toHaveLength(0);
  });

  test("BUS-2 asks another instance for what it reads when the first is silent, before it takes it for dead", async () => {
    const service = nameService();
    const openings: Msg[] = [];
    const subject = `toolbus.rpc.${service}.toolbus.agent.v1.AgentService.GetAgent`;
    peer.subscribe(subject, {
      callback: (_error, message) => {
        openings.push(message);
        if (openings.length === 1) return;
        const credit = bytesFromCredit({ messages: 1, bytes: 65_536 });
        message.respond(bytesFromFrame(FrameKind.credit, 0, 0, credit), { reply: "_INBOX.test.reader" });
        message.respond(bytesFromFrame(FrameKind.data, FrameFlag.end, 1));
      },
    });
    await peer.flush();
    const timings = { heartbeatMs: 1_000, silenceMs: 60_000 };
    const client = createClient(AgentService, createNatsTransport(await world.connect(), { service, timings }));
    await client.getAgent({ name: "x" });
    expect(openings.map(({ headers }) => headers?.get("Rpc-More"))).toEqual(["", "1"]);
  });

  test("BUS-2 PART-6 asks another instance for what it reads when the first is gone in the middle of the request", async () => {
    const service = nameService();
    let count = 0;
    peer.subscribe(`toolbus.rpc.${service}.toolbus.agent.v1.AgentService.GetAgent`, {
      callback: (_error, message) => {
        count += 1;
        const credit = bytesFromCredit({ messages: 1, bytes: 16_384 });
        message.respond(bytesFromFrame(FrameKind.credit, 0, 0, credit), { reply: "_INBOX.nowhere" });
        if (count === 2) message.respond(bytesFromFrame(FrameKind.data, FrameFlag.end, 1));
      },
    });
    await peer.flush();
    const timings = { heartbeatMs: 1_000, silenceMs: 5_000 };
    const client = createClient(AgentService, createNatsTransport(await world.connect(), { service, timings }));
    await client.getAgent({ name: "x".repeat(400_000) });
    expect(count).toBe(2);
  });

  test("BUS-2 does not repeat what may have been started", async () => {
    const service = nameService();
    const hand = await answerByHand(service, "Unary", (message) => message.respond(refusal));
    const client = await openClient(service);
    expect((await failureOf(client.unary({}))).rawMessage).toBe("I am leaving");
    expect(hand.count()).toBe(1);
  });

  test("BUS-2 ends a stream of which a frame was lost", async () => {
    const service = nameService();
    await answerByHand(service, "ServerStream", (message) => {
      message.respond(bytesFromFrame(FrameKind.data, 0, 0, new Uint8Array(0)), { reply: "_INBOX.nowhere" });
      message.respond(bytesFromFrame(FrameKind.data, 0, 2, new Uint8Array(0)));
    });
    const client = await openClient(service);
    const error = await failureOf(readAll(client.serverStream({})));
    expect([error.code, deliveryOf(error)]).toEqual([Code.Unavailable, "UNKNOWN"]);
    expect(error.rawMessage).toContain("lost");
  });

  test("BUS-2 ends a stream whose server sends what was not granted", async () => {
    const service = nameService();
    await answerByHand(service, "ServerStream", (message) => {
      for (let n = 0; n < 100; n += 1) message.respond(bytesFromFrame(FrameKind.data, 0, n, new Uint8Array(0)));
    });
    const client = await openClient(service);
    const error = await failureOf(readAll(client.serverStream({})));
    expect([error.code, error.rawMessage]).toEqual([Code.Internal, expect.stringContaining("than it was granted")]);
  });

  test.each(["Unary", "ServerStream"])(
    "BUS-2 ends a call of %s whose server takes no message of a request in parts",
    async (method) => {
      const service = nameService();
      await answerByHand(service, method, (message) => {
        const nothing = bytesFromCredit({ messages: 0, bytes: 65_536 });
        message.respond(bytesFromFrame(FrameKind.credit, 0, 0, nothing), { reply: "_INBOX.nowhere" });
      });
      const client = await openClient(service);
      const request = { value: new Uint8Array(512 * 1024) };
      const call = method === "Unary" ? client.unary(request) : readAll(client.serverStream(request));
      const error = await failureOf(call);
      expect([error.code, error.rawMessage]).toEqual([Code.Internal, expect.stringContaining("granted no message")]);
    },
  );

  test("BUS-2 ends a unary call whose answer is larger than was granted", async () => {
    const service = nameService();
    await answerByHand(service, "Unary", (message) =>
      message.respond(bytesFromFrame(FrameKind.data, FrameFlag.end, 0, new Uint8Array(256 * 1024 + 1))),
    );
    const client = await openClient(service);
    expect((await failureOf(client.unary({}))).rawMessage).toContain("than it was granted");
  });

  test("BUS-2 grants unary answers less when much is granted, and sends less of its requests when much is on the way", async () => {
    const service = nameService();
    const seen: { credit: string | undefined; bytes: number; hasMore: boolean }[] = [];
    await answerByHand(service, "Unary", ({ data, headers: block }) => {
      seen.push({ credit: block?.get("Rpc-Credit"), bytes: data.length, hasMore: block?.get("Rpc-More") === "1" });
    });
    const { connection } = await world.connect();
    const client = createClient(EchoService, createNatsTransport({ connection }, { service }));
    const controller = new AbortController();
    const request = { value: new Uint8Array(64 * 1024) };
    const calls = Array.from({ length: 200 }, () => failureOf(client.unary(request, { signal: controller.signal })));
    await until(() => seen.length === calls.length);
    controller.abort();
    await Promise.all(calls);
    expect(seen[0]).toEqual({ credit: "", bytes: request.value.length + 4, hasMore: false });
    expect(seen.at(-1)).toEqual({ credit: "1 32768", bytes: 16 * 1024, hasMore: true });
    const { budget, openings } = CallMux.of(connection);
    expect([budget.used, openings.used]).toEqual([0, 0]);
  });

  test("BUS-2 ends a call whose answer is no frame, no message or no answer at all", async () => {
    const answers = [
      Buffer.from([99, 0, 0, 0, 0, 0]),
      bytesFromFrame(FrameKind.data, FrameFlag.end, 0, Buffer.from([0xff, 0xff])),
      bytesFromFrame(FrameKind.end, 0, 0),
    ];
    for (const answer of answers) {
      const service = nameService();
      await answerByHand(service, "Unary", (message) => message.respond(answer));
      const client = await openClient(service);
      expect((await failureOf(client.unary({}))).code).toBe(Code.Internal);
    }
  });

  const wholeAnswer = bytesFromFrame(FrameKind.data, FrameFlag.end, 0);
  const firstOfMany = bytesFromFrame(FrameKind.data, 0, 0);
  const manyHeaders = Array.from({ length: 20_000 }, (_, n) => `x${n}: 1`).join("\r\n");
  const failure = bytesFromFrame(FrameKind.error, 0, 0, Buffer.from('{"code":"not_found","message":"no"}'));

  test.each([
    ["a whole request", "Unary", FrameKind.heartbeat, { value: new Uint8Array([7]) }],
    ["a request in parts", "Unary", FrameKind.credit, { value: new Uint8Array(512 * 1024) }],
    ["a request whose answers stream", "ServerStream", FrameKind.heartbeat, {}],
  ])("SEC-5 of %s sends nothing to a subject of a server that is no inbox", async (_what, method, kind, request) => {
    const service = nameService();
    const stored: Msg[] = [];
    const record = `$KV.toolbus_agents.${service}`;
    peer.subscribe(record, { callback: (_error, message) => void stored.push(message) });
    await answerByHand(service, method, (message) => {
      const body = kind === FrameKind.credit ? bytesFromCredit({ messages: 1, bytes: 65_536 }) : new Uint8Array(0);
      message.respond(bytesFromFrame(kind, 0, 0, body), { reply: record });
    });
    const client = await openClient(service);
    const ends = { timeoutMs: 1_200 }; // the first heartbeat of a client comes after a second
    const call = method === "Unary" ? client.unary(request, ends) : readAll(client.serverStream(request, ends));
    const error = await failureOf(call);
    await peer.flush();
    expect(stored).toHaveLength(0);
    expect([error.code, error.rawMessage]).toEqual([Code.Internal, expect.stringContaining("no inbox")]);
  });

  test("SEC-1 a server cannot name the inbox of a call that it does not serve, to have the client itself answer it", async () => {
    const bus = await world.connect();
    const openings = new Map<string, Msg>();
    const clientOf = async (name: string) => {
      const service = nameService();
      await answerByHand(service, "Unary", (message) => void openings.set(name, message));
      return createClient(EchoService, createNatsTransport(bus, { service }));
    };
    const [hostile, honest] = [await clientOf("hostile"), await clientOf("honest")];
    const encoded = (text: string) =>
      toBinary(BytesValueSchema, create(BytesValueSchema, { value: Buffer.from(text) }));
    const value = Buffer.alloc(256 * 1024 - 4 + encoded("forged").length); // all but the last bytes go with the opening
    value.set(encoded("forged"), value.length - encoded("forged").length);
    const controller = new AbortController();
    const ended = failureOf(hostile.unary({ value }, { signal: controller.signal }));
    await until(() => openings.get("hostile"));
    const answered = honest.unary({});
    await until(() => openings.get("honest"));
    const { reply = "" } = openings.get("hostile")!;
    const at = reply.lastIndexOf(".") + 1;
    const next = reply.slice(0, at) + (Number.parseInt(reply.slice(at), 36) + 1).toString(36);
    const rest = Promise.withResolvers<void>();
    peer.subscribe(next, { callback: () => rest.resolve() });
    await peer.flush();
    const credit = bytesFromCredit({ messages: 1, bytes: 65_536 });
    openings.get("hostile")!.respond(bytesFromFrame(FrameKind.credit, 0, 0, credit), { reply: next });
    await rest.promise;
    openings.get("honest")!.respond(bytesFromFrame(FrameKind.data, FrameFlag.end, 0, encoded("mine")));
    expect(Buffer.from((await answered).value).toString()).toBe("mine");
    controller.abort();
    await ended;
  });

  test("SEC-5 a server that never ends its large answers leaves room for those of others", async () => {
    const [hostile, honest] = [nameService(), nameService()];
    const timings = { heartbeatMs: 1_000, silenceMs: 60_000 };
    const bus = await world.connect();
    const clientOf = (service: string) => createClient(EchoService, createNatsTransport(bus, { service, timings }));
    let stalled = 0;
    await answerByHand(hostile, "Unary", (message, count) => {
      const inbox = `_INBOX.test.stalled.${hostile}.${count}`;
      let [sequence, granted, sent] = [0, 256 * 1024, 0];
      const part = new Uint8Array(64 * 1024);
      const send = () => {
        for (; granted >= part.length && sent <= 1024 * 1024; granted -= part.length, sent += part.length)
          message.respond(bytesFromFrame(FrameKind.data, FrameFlag.more, sequence++, part), { reply: inbox });
        if (sent > 1024 * 1024) stalled += 1;
      };
      peer.subscribe(inbox, {
        callback: (_error, { data }) => {
          const frame = parseFrame(data);
          if (frame?.kind !== FrameKind.credit || sent > 1024 * 1024) return;
          granted += parseCredit(frame.body).bytes;
          send();
        },
      });
      send();
    });
    await using _server = await serveOnNats(await world.connect(), {
      service: honest,
      routes: (router) => router.service(EchoService, { unary: (request) => request }),
    });
    const controller = new AbortController();
    const { signal } = controller;
    const stalling = Array.from({ length: 6 }, () => failureOf(clientOf(hostile).unary({}, { signal })));
    await until(() => stalled === stalling.length);
    const value = new Uint8Array(2 * 1024 * 1024);
    expect((await clientOf(honest).unary({ value }, { timeoutMs: 8_000 })).value).toHaveLength(value.length);
    controller.abort();
    await Promise.all(stalling);
  });

  test("SEC-5 a server whose answers take long to parse holds up those of others by one of them", async () => {
    const [hostile, honest] = [nameService(), nameService()];
    const bus = await world.connect();
    const clientOf = (service: string) => createClient(AgentService, createNatsTransport(bus, { service }));
    const openings: Msg[] = [];
    for (const service of [hostile, honest]) {
      peer.subscribe(`toolbus.rpc.${service}.toolbus.agent.v1.AgentService.ListAgents`, {
        callback: (_error, message) => void openings.push(message),
      });
    }
    await peer.flush();
    let parsed = 0;
    const flood = Array.from({ length: 4 }, async () => {
      await clientOf(hostile).listAgents({});
      parsed += 1;
    });
    await until(() => openings.length === flood.length);
    const answer = clientOf(honest)
      .listAgents({})
      .then(() => parsed);
    await until(() => openings.length === flood.length + 1);
    const manyAgents = toBinary(
      ListAgentsResponseSchema,
      create(ListAgentsResponseSchema, { agents: Array(5_100).fill({}) }), // as few as take a turn: all come in one piece
    );
    let parsedBefore = 0;
    bus.connection.subscribe(honest, {
      callback: () => {
        parsedBefore = parsed;
      },
    });
    await bus.connection.flush();
    const [own] = openings.splice(-1);
    for (const message of openings) message.respond(bytesFromFrame(FrameKind.data, FrameFlag.end, 0, manyAgents));
    peer.publish(honest); // the first of them may have been parsed when it comes
    own?.respond(bytesFromFrame(FrameKind.data, FrameFlag.end, 0, manyAgents));
    expect((await answer) - parsedBefore).toBeLessThan(3);
    await Promise.all(flood);
  });

  test("BUS-2 cancels a stream when one of its answers is no message", async () => {
    const service = nameService();
    const inbox = `_INBOX.test.garbled.${service}`;
    const kinds: (number | undefined)[] = [];
    peer.subscribe(inbox, { callback: (_error, { data }) => void kinds.push(parseFrame(data)?.kind) });
    await answerByHand(service, "ServerStream", (message) =>
      message.respond(bytesFromFrame(FrameKind.data, 0, 0, Buffer.from([0xff, 0xff])), { reply: inbox }),
    );
    const client = await openClient(service);
    const error = await failureOf(readAll(client.serverStream({})));
    expect([error.code, deliveryOf(error)]).toEqual([Code.Internal, "UNKNOWN"]);
    await until(() => kinds.includes(FrameKind.cancel), { timeoutMs: 5_000, what: "the cancel" });
  });

  test.each([
    ["a value beyond Latin-1", "a whole answer", "x-note: \u4f60", wholeAnswer],
    ["a value beyond Latin-1", "an answer of many", "x-note: \u4f60", firstOfMany],
    ["a value beyond Latin-1", "an error", "x-note: \u4f60", failure],
    ["a key with a space", "a whole answer", "x note: 1", wholeAnswer],
    ["a key with a space", "an answer of many", "x note: 1", firstOfMany],
    ["a key with a space", "no frame", "x note: 1", new Uint8Array(0)],
    ["a key that HTTP does not have", "a whole answer", "x/note: 1", wholeAnswer],
    ["a trailer without a key", "a whole answer", "Trailer-: 1", wholeAnswer],
    ["headers without number", "a whole answer", manyHeaders, wholeAnswer],
    ["headers without number", "an answer of many", manyHeaders, firstOfMany],
  ])("BUS-2 ends a call that is answered with %s in %s, and goes on with others", async (_what, _in, line, frame) => {
    const service = nameService();
    await answerByHand(service, "Unary", (message, count) => {
      if (count === 1) message.respond(frame, { headers: rawHeaders(line), reply: "_INBOX.test.odd" });
      else message.respond(bytesFromFrame(FrameKind.data, FrameFlag.end, 0));
    });
    const client = await openClient(service);
    const error = await failureOf(client.unary({}, { timeoutMs: 2_000 }));
    expect([error.code, deliveryOf(error)]).toEqual([Code.Internal, "UNKNOWN"]);
    expect((await client.unary({}, { timeoutMs: 2_000 })).value).toHaveLength(0);
  });
});

describe("a server", () => {
  async function openServer(look = (_context: HandlerContext) => {}) {
    const service = nameService();
    let started = 0;
    const server = await serveOnNats(await world.connect(), {
      service,
      routes: (router) =>
        router.service(EchoService, {
          async unary(request, context) {
            look(context);
            started += 1;
            return request;
          },
        }),
    });
    const subject = `toolbus.rpc.${service}.${METHOD}.Unary`;
    return { service, subject, started: () => started, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
  }

  const block = (lines: Record<string, number | string>) => {
    const block = headers();
    for (const [key, value] of Object.entries(lines)) block.set(key, String(value));
    return block;
  };

  test("BUS-2 refuses a request that was given up on its way before starting it, by its sender's clock alone", async () => {
    await using server = await openServer();
    const send = (sent: number, more = {}) =>
      peer.request(server.subject, "", { timeout: 2_000, headers: block({ "Rpc-Sent": `peer ${sent}`, ...more }) });
    expect(parseFrame((await send(50_000)).data)?.kind).toBe(FrameKind.data);
    const inTime = await send(48_000);
    expect(parseFrame(inTime.data)?.kind).toBe(FrameKind.data);
    for (const late of [await send(46_000), await send(48_000, { "Rpc-Timeout": 1_500 })]) {
      expect(late.headers?.get("Rpc-Delivery")).toBe("NOT_SENT");
      expect(Buffer.from(parseFrame(late.data)?.body ?? []).toString()).toContain("deadline_exceeded");
    }
    expect(server.started()).toBe(2);
  });

  test.each([-10_000, 10_000])("BUS-2 serves a caller whose clock is %i ms off", async (offMs) => {
    await using server = await openServer();
    const expires = Date.now() + offMs + 3_000;
    for (const timeout of [{}, { "Rpc-Timeout": 1_000 }]) {
      const headers = block({ "Rpc-Expires": expires, "Rpc-Sent": `off ${100_000 + offMs}`, ...timeout });
      const answer = await peer.request(server.subject, "", { timeout: 2_000, headers });
      expect(parseFrame(answer.data)?.kind).toBe(FrameKind.data);
    }
  });

  test("BUS-2 remembers a cancel that comes before its request", async () => {
    await using server = await openServer();
    const inbox = "_INBOX.test.inbox.1";
    peer.publish(cancelSubjectOf(server.service), inbox);
    await peer.flush();
    peer.publish(server.subject, "", { reply: inbox });
    const answer = await peer.request(server.subject, "", { timeout: 2_000 });
    expect(parseFrame(answer.data)?.kind).toBe(FrameKind.data);
    await until(() => server.started() === 1);
  });

  test("SEC-5 answers to inboxes alone", async () => {
    await using server = await openServer();
    const record = "$KV.toolbus_agents.served";
    const stored: Msg[] = [];
    peer.subscribe(record, { callback: (_error, message) => void stored.push(message) });
    peer.publish(server.subject, "", { reply: record });
    const answer = await peer.request(server.subject, "", { timeout: 2_000 });
    expect(parseFrame(answer.data)?.kind).toBe(FrameKind.data);
    expect([server.started(), stored.length]).toEqual([1, 0]);
  });

  test.each(["Unary", "ServerStream"])("BUS-2 sends nothing more to who has canceled a call of %s", async (method) => {
    const service = nameService();
    const released = Promise.withResolvers<void>();
    let started = 0;
    await using _server = await serveOnNats(await world.connect(), {
      service,
      timings: { heartbeatMs: 100, silenceMs: 60_000 },
      routes: (router) =>
        router.service(EchoService, {
          async unary(request) {
            started += 1;
            await released.promise;
            return request;
          },
          async *serverStream(request) {
            started += 1;
            await released.promise;
            yield request;
            yield request;
          },
        }),
    });
    const [canceled, other] = ["canceled", "other"].map((name) => `_INBOX.test.${service}.${name}`) as [string, string];
    const kinds: Record<string, (number | undefined)[]> = { [canceled]: [], [other]: [] };
    peer.subscribe(`_INBOX.test.${service}.*`, {
      callback: (_error, { subject, data }) => void kinds[subject]?.push(parseFrame(data)?.kind),
    });
    const subject = `toolbus.rpc.${service}.${METHOD}.${method}`;
    const open = (reply: string) => peer.publish(subject, "", { reply, headers: block({ "Rpc-Credit": "8 65536" }) });
    open(canceled);
    await until(() => started === 1);
    peer.publish(cancelSubjectOf(service), canceled);
    open(other);
    await until(() => (kinds[other]?.length ?? 0) >= 2 || (method === "ServerStream" && started === 2));
    released.resolve();
    const last = method === "Unary" ? FrameKind.data : FrameKind.end;
    await until(() => kinds[other]?.includes(last), { what: "the answer of the other call" });
    expect(kinds[canceled]).toEqual([]);
  });

  test("BUS-2 answers no more than was granted, and the rest when it is", async () => {
    await using server = await openServer();
    const inbox = "_INBOX.test.inbox.2";
    const frames: Msg[] = [];
    peer.subscribe(inbox, { callback: (_error, message) => void frames.push(message) });
    const granting = headers();
    granting.set("Rpc-Credit", "1 16384");
    const request = toBinary(BytesValueSchema, create(BytesValueSchema, { value: new Uint8Array(100 * 1024) }));
    peer.publish(server.subject, request, { reply: inbox, headers: granting });
    const [first] = await until(() => frames.length > 0 && frames);
    expect([first?.data[1], first?.data.length]).toEqual([FrameFlag.more, 6 + 16_384]);
    const credit = bytesFromCredit({ messages: 0, bytes: 256 * 1024 });
    peer.publish(first?.reply ?? "", bytesFromFrame(FrameKind.credit, 0, 0, credit));
    const last = await until(() => frames.find((frame) => frame.data[1] === FrameFlag.end));
    expect([frames.length, last.data.length]).toEqual([2, 6 + request.length - 16_384]);
  });

  test.each(["x note: 1", "x-note: \u4f60"])(
    "BUS-2 answers a request whose metadata cannot be read, as %s, with invalid_argument",
    async (line) => {
      await using server = await openServer(({ requestHeader }) => void requestHeader.get("x-note"));
      const answer = await peer.request(server.subject, "", { timeout: 2_000, headers: rawHeaders(line) });
      expect(Buffer.from(parseFrame(answer.data)?.body ?? []).toString()).toContain("invalid_argument");
      expect(server.started()).toBe(0);
    },
  );

  test("BUS-2 answers a request that is no message with invalid_argument", async () => {
    await using server = await openServer();
    const answer = await peer.request(server.subject, new Uint8Array([0xff, 0xff]), { timeout: 2_000 });
    expect(Buffer.from(parseFrame(answer.data)?.body ?? []).toString()).toContain("invalid_argument");
  });
});
