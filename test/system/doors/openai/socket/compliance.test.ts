// What the official compliance suite of Open Responses asks of a WebSocket, under the names of its tests.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { answered, ask, openResponsesDoor, type Told } from "../../fixtures/responses-door.ts";
import { openResponsesSocket, type ResponsesSocket } from "../../fixtures/responses-socket.ts";
import { findingsIn } from "../../fixtures/stream-findings.ts";

const stack = new AsyncDisposableStack();
let here: { url: string };

beforeAll(async () => {
  here = { url: (await openResponsesDoor(stack)).suite.url };
}, 120_000);
afterAll(() => stack.disposeAsync());

const turn = (input: unknown, fields: object = {}) => ({ type: "response.create", model: "talker", input, ...fields });
const notStored = (input: unknown, previous_response_id?: string) =>
  turn(input, { store: false, ...(previous_response_id && { previous_response_id }) });
const notFound = [
  { type: "error", status: 404, error: expect.objectContaining({ code: "previous_response_not_found" }) },
];

async function completed(socket: ResponsesSocket, message: object): Promise<Told["response"]> {
  const events = await socket.say(message);
  expect(findingsIn(events)).toEqual([]);
  expect(events.at(-1)).toMatchObject({ type: "response.completed", response: { status: "completed" } });
  return events.at(-1)?.response;
}

describe("LOOP-18 compliance of a WebSocket with Open Responses", () => {
  it("websocket-response", async () => {
    using socket = await openResponsesSocket(here);
    const { output } = await completed(socket, turn("Count."));
    expect(output.at(-1).content[0].text).toBe("You said: Count.");
  });

  it("websocket-sequential-responses", async () => {
    using socket = await openResponsesSocket(here);
    for (const word of ["one", "two"]) {
      const { output } = await completed(socket, notStored(word));
      expect(output.at(-1).content[0].text).toBe(`You said: ${word}`);
    }
  });

  it("websocket-continuation", async () => {
    using socket = await openResponsesSocket(here);
    const first = await completed(socket, notStored("one"));
    const second = await completed(socket, notStored("two", first.id));
    expect(second.previous_response_id).toBe(first.id);
  });

  it("websocket-reconnect-store-false-recovery", async () => {
    let id: string;
    {
      using socket = await openResponsesSocket(here);
      ({ id } = await completed(socket, notStored("one")));
    }
    using socket = await openResponsesSocket(here);
    expect(await socket.say(notStored("two", id))).toEqual(notFound);
    await completed(socket, notStored("one and two"));
  });

  it("websocket-previous-response-not-found", async () => {
    using socket = await openResponsesSocket(here);
    expect(await socket.say(notStored("two", "resp_that_never_was"))).toEqual(notFound);
  });

  it("websocket-failed-continuation-evicts-cache", async () => {
    using socket = await openResponsesSocket(here);
    const { id } = await completed(socket, notStored("one"));
    const output = [{ type: "function_call_output", call_id: "call_that_never_was", output: "x" }];
    expect((await socket.say(notStored(output, id))).at(-1)?.type).toMatch(/^(error|response\.failed)$/);
    expect(await socket.say(notStored("two", id))).toEqual(notFound);
  });

  it("websocket-compact-new-chain", async () => {
    const input = [{ type: "message", role: "user", content: "one" }];
    const compacted = await answered(ask(here, "POST /v1/responses/compact", { model: "talker", input }));
    using socket = await openResponsesSocket(here);
    const onward = [...compacted.output, { type: "message", role: "user", content: "two" }];
    const { previous_response_id: previous } = await completed(socket, notStored(onward));
    expect(previous).toBe(null);
  });
});
