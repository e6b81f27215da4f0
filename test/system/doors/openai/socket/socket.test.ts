// A WebSocket of responses beside what it is made for: strangers, faults, shares, a process that stops, and clients of OpenAI's.

import { once } from "node:events";
import { Agent, OpenAIProvider, Runner, tool } from "@openai/agents";
import OpenAI from "openai";
import { ResponsesWS } from "openai/resources/responses/ws";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import type { TestSuite } from "../../../../harness/suite.ts";
import { answered, ask, keys, openResponsesDoor, type Told } from "../../fixtures/responses-door.ts";
import { openResponsesSocket, refusedSocket } from "../../fixtures/responses-socket.ts";
import { findingsIn } from "../../fixtures/stream-findings.ts";

const stack = new AsyncDisposableStack();
let here: { url: string };
let there: TestSuite;

beforeAll(async () => {
  const { suite, other } = await openResponsesDoor(stack);
  here = { url: suite.url };
  there = other;
}, 120_000);
afterAll(() => stack.disposeAsync());

const turn = (input: unknown, fields: object = {}) => ({ type: "response.create", model: "talker", input, ...fields });
const ended = { type: "response.completed" };

describe("LOOP-18 a WebSocket of responses", () => {
  it("goes on with what was stored, whoever asks for it where", async () => {
    const first = await answered(ask(here, "POST /v1/responses", { model: "talker", input: "one" }));
    using socket = await openResponsesSocket({ url: there.url });
    const events = await socket.say(turn("two", { previous_response_id: first.id }));
    const { response } = events.at(-1) as Told;
    expect(await answered(ask(here, `GET /v1/responses/${response.id}`))).toEqual(response);
  });

  it("answers what is sent at once in its order", async () => {
    using socket = await openResponsesSocket(here);
    for (const word of ["one", "two", "three"]) socket.raw.send(JSON.stringify(turn(word)));
    const events = await socket.say(turn("four"));
    while (events.filter(({ type }) => type === ended.type).length < 4) events.push(await socket.next());
    const starts = events.flatMap(({ type }, place) => (type === "response.created" ? [place] : []));
    const turns = starts.map((start, n) => events.slice(start, starts[n + 1]));
    expect(turns.flatMap(findingsIn)).toEqual([]);
    const texts = turns.map((told) => told.at(-1)?.response.output.at(-1).content[0].text);
    expect(texts).toEqual(["one", "two", "three", "four"].map((word) => `You said: ${word}`));
  });

  it("that is left has canceled nothing", async () => {
    using socket = await openResponsesSocket(here);
    socket.raw.send(JSON.stringify(turn("go", { model: "slow" })));
    const { response } = await socket.next();
    socket.raw.terminate();
    const stream = await ask(here, `GET /v1/responses/${response.id}?stream=true`);
    expect(await stream.text()).toContain("event: response.completed");
  });
});

const deep = `${"[".repeat(20_000)}${"]".repeat(20_000)}`;
const faults: Record<string, [message: string | Buffer, told: { status: number; code?: string; param?: string }]> = {
  "no JSON": ["{", { status: 400 }],
  "no object": ["[1]", { status: 400, param: "type" }],
  "bytes that are no text": [Buffer.from([0xff, 0xfe]), { status: 400 }],
  "no end of levels": [`{"type":"response.create","input":${deep}}`, { status: 400 }],
  "another type": [JSON.stringify({ ...turn("x"), type: "response.cancel" }), { status: 400, param: "type" }],
  "an unknown agent": [JSON.stringify(turn("x", { model: "nobody" })), { status: 404, param: "model" }],
  background: [JSON.stringify(turn("x", { background: true })), { status: 400, param: "background" }],
  "a request before the request": [JSON.stringify(turn("x", { generate: false })), { status: 400, param: "generate" }],
};

describe("LOOP-18 what is wrong on a WebSocket of responses", () => {
  it.each(Object.entries(faults))("%s is told, and the connection stands", async (_, [message, { status, param }]) => {
    using socket = await openResponsesSocket(here);
    const [told, ...more] = await socket.say(message);
    expect(more).toEqual([]);
    expect(told).toMatchObject({ type: "error", status, error: { param: param ?? expect.any(String) } });
    expect((await socket.say(turn("after"))).at(-1)).toMatchObject(ended);
  });

  it("more than a message may be ends the connection with the code for it", async () => {
    using socket = await openResponsesSocket(here);
    socket.raw.send("x".repeat(64 * 1024 * 1024 + 1));
    const [code] = await once(socket.raw, "close");
    expect(code).toBe(1009);
  });

  it("a request without a WebSocket, and one at another place, are told so", async () => {
    expect((await ask(here, "GET /v1/responses")).status).toBe(404);
    expect(await refusedSocket(here, "/v1/models/nothing")).toMatchObject({ status: 404 });
    expect(await refusedSocket(here, "/nowhere")).toMatchObject({ status: 404 });
    const broken = await refusedSocket({ ...here, headers: { "sec-websocket-version": "7" } });
    expect(broken.status).toBe(400);
  });

  it("a gateway that stops says so", async () => {
    using socket = await openResponsesSocket({ url: there.url });
    const closed = once(socket.raw, "close");
    const told = socket.next();
    await there.stop();
    expect(await told).toMatchObject({ type: "error", status: 503, error: { code: "INSTANCE_STOPPING" } });
    expect((await closed)[0]).toBe(1001);
  });
});

describe("SEC-2 a WebSocket of responses", () => {
  it("is not opened without a key, nor by a page of elsewhere", async () => {
    for (const key of ["", "wrong"]) expect((await refusedSocket({ ...here, key })).status).toBe(401);
    const page = await refusedSocket({ ...here, headers: { origin: "http://elsewhere.example" } });
    expect(page.status).toBe(403);
    expect(page.body.error.message).toContain("TOOLBUS_CORS_ORIGINS");
  });

  it("does not go on with a response of another principal", async () => {
    const { id } = await answered(ask(here, "POST /v1/responses", { model: "talker", input: "only for alice" }));
    using socket = await openResponsesSocket({ ...here, key: keys.mallory });
    const [told] = await socket.say(turn("and?", { previous_response_id: id }));
    const [unknown] = await socket.say(turn("and?", { previous_response_id: "resp_run_00000000000000000000" }));
    expect(told).toMatchObject({ type: "error", status: 404 });
    expect(JSON.stringify(told)).toBe(JSON.stringify(unknown).replace("resp_run_00000000000000000000", id));
  });
});

const clientOf = () => new OpenAI({ baseURL: `${here.url}/v1`, apiKey: keys.alice, maxRetries: 0 });

describe("LOOP-18 clients of OpenAI's over a WebSocket", () => {
  it("the client for JavaScript gets its events", async () => {
    const socket = new ResponsesWS(clientOf());
    const told: string[] = [];
    const done = new Promise<void>((resolve, reject) => {
      socket.on("error", reject);
      socket.on("event", (event) => {
        told.push(event.type);
        if (event.type === ended.type) resolve();
      });
    });
    socket.send({ type: "response.create", model: "talker", input: "hello" });
    await done;
    socket.close();
    expect(told[0]).toBe("response.created");
  });

  it("the Agents SDK calls its function, and streams what follows", async () => {
    const getWeather = tool({
      ...{ name: "get_weather", description: "Tells the weather", parameters: z.object({ city: z.string() }) },
      execute: ({ city }) => `sunny in ${city}`,
    });
    const provider = new OpenAIProvider({ openAIClient: clientOf(), useResponsesWebSocket: true });
    const runner = new Runner({ modelProvider: provider, tracingDisabled: true });
    const agent = new Agent({ name: "weather", model: "weather", tools: [getWeather] });
    const result = await runner.run(agent, "How is the weather in Bern?", { stream: true });
    await Array.fromAsync(result);
    expect(result.finalOutput).toBe("It is sunny in Bern.");
    await provider.close();
  });
});
