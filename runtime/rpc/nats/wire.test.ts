import { Code, createClient } from "@connectrpc/connect";
import { headers, type Msg, type NatsConnection } from "@nats-io/nats-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "#runtime/time/until.ts";
import { deliveryOf } from "./delivery.ts";
import { failureOf, readAll } from "./echo-outcome.fixture.ts";
import { EchoService } from "./echo-service.fixture.ts";
import { type EchoWorld, openEchoWorld } from "./echo-world.fixture.ts";
import { bytesFromFrame, FrameFlag, FrameKind, parseFrame } from "./frame.ts";
import { serveOnNats } from "./server.ts";
import { cancelSubjectOf } from "./subjects.ts";
import { createNatsTransport } from "./transport.ts";

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
      message.respond(bytesFromFrame(FrameKind.data, 0, 0, new Uint8Array(0)), { reply: "toolbus.nowhere" });
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
});

describe("a server", () => {
  async function openServer() {
    const service = nameService();
    let started = 0;
    const server = await serveOnNats(await world.connect(), {
      service,
      routes: (router) =>
        router.service(EchoService, {
          async unary(request) {
            started += 1;
            return request;
          },
        }),
    });
    const subject = `toolbus.rpc.${service}.${METHOD}.Unary`;
    return { service, subject, started: () => started, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
  }

  const opening = (expires: number) => {
    const block = headers();
    block.set("Rpc-Expires", String(expires));
    return block;
  };

  test("BUS-2 refuses a request whose time is over before starting it", async () => {
    await using server = await openServer();
    const answer = await peer.request(server.subject, "", { timeout: 2_000, headers: opening(Date.now() - 1) });
    expect(answer.headers?.get("Rpc-Delivery")).toBe("NOT_SENT");
    expect(Buffer.from(parseFrame(answer.data)?.body ?? []).toString()).toContain("deadline_exceeded");
    expect(server.started()).toBe(0);
  });

  test("BUS-2 refuses a request without an expiry", async () => {
    await using server = await openServer();
    const answer = await peer.request(server.subject, "", { timeout: 2_000 });
    expect(Buffer.from(parseFrame(answer.data)?.body ?? []).toString()).toContain("invalid_argument");
    expect(server.started()).toBe(0);
  });

  test("BUS-2 remembers a cancel that comes before its request", async () => {
    await using server = await openServer();
    const inbox = "toolbus.test.inbox.1";
    peer.publish(cancelSubjectOf(server.service), inbox);
    await peer.flush();
    peer.publish(server.subject, "", { reply: inbox, headers: opening(Date.now() + 5_000) });
    const answer = await peer.request(server.subject, "", { timeout: 2_000, headers: opening(Date.now() + 5_000) });
    expect(parseFrame(answer.data)?.kind).toBe(FrameKind.data);
    await until(() => server.started() === 1);
  });

  test("BUS-2 answers a request that is no message with invalid_argument", async () => {
    await using server = await openServer();
    const request = { timeout: 2_000, headers: opening(Date.now() + 5_000) };
    const answer = await peer.request(server.subject, new Uint8Array([0xff, 0xff]), request);
    expect(Buffer.from(parseFrame(answer.data)?.body ?? []).toString()).toContain("invalid_argument");
  });
});
