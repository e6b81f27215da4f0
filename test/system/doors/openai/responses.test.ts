// An agent for clients of OpenAI's Responses, by hand.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { answered, ask, keys, openResponsesDoor, type Told, toldBy } from "../fixtures/responses-door.ts";

const stack = new AsyncDisposableStack();
let here: { url: string };
let there: { url: string };

beforeAll(async () => {
  const { suite, other } = await openResponsesDoor(stack);
  [here, there] = [{ url: suite.url }, { url: other.url }];
}, 120_000);
afterAll(() => stack.disposeAsync());

const create = (body: object) => answered(ask(here, "POST /v1/responses", body));
const textsOf = (events: readonly Told[], type: string) =>
  events.filter((event) => event.type === type).map(({ delta }) => delta);

describe("LOOP-18 a response", () => {
  it("is created of a text, and can be retrieved at any gateway, also as its events", async () => {
    const created = await create({ model: "talker", input: "hello there" });
    expect(created).toMatchObject({ object: "response", status: "completed", model: "talker", error: null });
    expect(created.output).toMatchObject([
      { type: "reasoning", summary: [{ type: "summary_text", text: "What was said? " }] },
      { type: "message", role: "assistant", content: [{ type: "output_text", text: "You said: hello there" }] },
    ]);
    expect(created.usage.total_tokens).toBeGreaterThan(0);
    expect(await answered(ask(there, `GET /v1/responses/${created.id}`))).toEqual(created);
    const events = await Array.fromAsync(toldBy(await ask(there, `GET /v1/responses/${created.id}?stream=true`)));
    expect(events.at(-1)).toMatchObject({ type: "response.completed", response: created });
  });

  it("tells of all its turns what was read from the provider's cache and what was thought", async () => {
    const { id, usage } = await create({ model: "counted", input: "one two three four" });
    const details = {
      input_tokens_details: { cached_tokens: 2, cache_write_tokens: 1 },
      output_tokens_details: { reasoning_tokens: 3 },
    };
    expect(usage).toMatchObject(details);
    expect((await answered(ask(there, `GET /v1/responses/${id}`))).usage).toMatchObject(details);
    const messages = [{ role: "user", content: "one two three four" }];
    const { usage: used } = await answered(ask(here, "POST /v1/chat/completions", { model: "counted", messages }));
    expect(used).toMatchObject({
      prompt_tokens_details: { cached_tokens: 2 },
      completion_tokens_details: { reasoning_tokens: 3 },
    });
  });

  it("is streamed with contiguous numbers, which a later stream of it has too", async () => {
    const streamed = await ask(here, "POST /v1/responses", { model: "talker", input: "hello there", stream: true });
    expect(streamed.headers.get("content-type")).toContain("text/event-stream");
    const live = await Array.fromAsync(toldBy(streamed));
    expect(live.map(({ sequence_number: number }) => number)).toEqual(live.map((_, n) => n));
    expect(live.map(({ type }) => type).filter((type) => !type.endsWith(".delta"))).toEqual([
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.reasoning_summary_part.added",
      "response.reasoning_summary_text.done",
      "response.reasoning_summary_part.done",
      "response.output_item.done",
      "response.output_item.added",
      "response.content_part.added",
      "response.output_text.done",
      "response.content_part.done",
      "response.output_item.done",
      "response.completed",
    ]);
    expect(textsOf(live, "response.output_text.delta").join("")).toBe("You said: hello there");
    const { id } = live.at(-1)?.response ?? {};
    const again = await ask(there, `GET /v1/responses/${id}?stream=true&starting_after=5`);
    expect(await Array.fromAsync(toldBy(again))).toEqual(live.slice(6));
  });

  it("that goes on can be resumed at another gateway behind what was seen", async () => {
    const seen: Told[] = [];
    for await (const event of toldBy(
      await ask(here, "POST /v1/responses", { model: "slow", input: "go", stream: true }),
    )) {
      seen.push(event);
      if (textsOf(seen, "response.output_text.delta").length === 10) break; // the client loses its stream
    }
    const { id } = seen[0]?.response ?? {};
    const path = `GET /v1/responses/${id}?stream=true&starting_after=${seen.at(-1)?.sequence_number}`;
    const rest = await Array.fromAsync(toldBy(await ask(there, path)));
    const whole = [...seen, ...rest];
    expect(whole.map(({ sequence_number: number }) => number)).toEqual(whole.map((_, n) => n));
    const text = textsOf(whole, "response.output_text.delta").join("");
    expect(text).toBe(whole.at(-1)?.response.output[0].content[0].text);
  });

  it("continues the one that it names, and the agent is shown what was said there", async () => {
    const first = await create({ model: "prompted", input: "papaya" });
    const next = await create({ model: "prompted", input: "what was it?", previous_response_id: first.id });
    expect(next.previous_response_id).toBe(first.id);
    expect(next.output[0].content[0].text).toContain("papaya");
    const alien = await ask(here, "POST /v1/responses", {
      model: "talker",
      input: "x",
      previous_response_id: first.id,
    });
    expect(await alien.json()).toMatchObject({ error: { param: "model", code: "INVALID_REQUEST" } });
  });

  it("runs in the background, and is canceled", async () => {
    const begun = await create({ model: "slow", input: "go", background: true });
    expect(["queued", "in_progress"]).toContain(begun.status);
    const canceled = await answered(ask(there, `POST /v1/responses/${begun.id}/cancel`));
    expect(["in_progress", "queued", "cancelled"]).toContain(canceled.status);
    const events = await Array.fromAsync(toldBy(await ask(here, `GET /v1/responses/${begun.id}?stream=true`)));
    expect(events.at(-1)).toMatchObject({ type: "response.incomplete", response: { status: "cancelled" } });
  });

  it("is named by the id of its request, streamed or not", async () => {
    for (const stream of [false, true]) {
      const answer = await ask(here, "POST /v1/responses", { model: "talker", input: "hi", stream });
      expect(await answer.text()).toContain(`"id":"resp_${answer.headers.get("x-request-id")}"`);
    }
  });

  it("is deleted once it has ended, and nobody gets or continues it any more", async () => {
    const slow = await create({ model: "slow", input: "go", background: true });
    const remove = (id: string, key = keys.alice) => answered(ask({ ...there, key }, `DELETE /v1/responses/${id}`));
    const early = await ask(here, `DELETE /v1/responses/${slow.id}`);
    expect(await early.json()).toMatchObject({ error: { code: "RUN_NOT_ENDED" } });
    expect(["x-should-retry", "retry-after"].map((name) => early.headers.get(name))).toEqual([null, "1"]);
    await answered(ask(here, `POST /v1/responses/${slow.id}/cancel`));
    await Array.fromAsync(toldBy(await ask(here, `GET /v1/responses/${slow.id}?stream=true`)));
    expect(await remove(slow.id, keys.mallory)).toMatchObject({ error: { code: "RUN_NOT_FOUND" } });
    expect(await remove(slow.id)).toEqual({ id: slow.id, object: "response", deleted: true });
    const gone = await ask(here, `GET /v1/responses/${slow.id}`);
    expect([gone.status, await gone.json()]).toMatchObject([404, { error: { code: "RUN_NOT_FOUND" } }]);
    const next = await create({ model: "slow", input: "and?", previous_response_id: slow.id });
    expect(next).toMatchObject({ error: { code: "previous_response_not_found" } });
  });

  it("is one for one idempotency key", async () => {
    const once = { ...here, headers: { "idempotency-key": "once" } };
    const ids = await Promise.all(
      [here, there].map(async ({ url }) => {
        const made = ask({ ...once, url }, "POST /v1/responses", { model: "talker", input: "once" });
        return (await answered(made)).id;
      }),
    );
    expect(new Set(ids).size).toBe(1);
  });
});

describe("LOOP-18 a refusal", () => {
  const refused = async (request: string, body?: unknown, key?: string) => {
    const response = await ask({ ...here, ...(key !== undefined && { key }) }, request, body);
    return { status: response.status, ...((await response.json()) as object) };
  };

  it("names what is at fault, with the reason of the contract", async () => {
    for (const model of ["nobody", "gpt-4.1", "openai/clerk"])
      expect(await refused("POST /v1/responses", { model, input: "x" })).toMatchObject({
        status: 404,
        error: { type: "not_found", code: "AGENT_NOT_FOUND", param: "model", message: expect.stringContaining(model) },
      });
    expect(
      await refused("POST /v1/responses", { model: "talker", input: [{ role: "dog", content: "x" }] }),
    ).toMatchObject({ status: 400, error: { type: "invalid_request_error", code: "INVALID_REQUEST" } });
    expect(await refused("POST /v1/responses", { model: "talker", input: "x", conversation: "c" })).toMatchObject({
      status: 400,
      error: { param: "conversation", message: expect.stringContaining("previous_response_id") },
    });
    expect(await refused("POST /v1/responses", "{")).toMatchObject({
      status: 400,
      error: { code: "REQUEST_MALFORMED" },
    });
    expect(await refused("GET /v1/nothing")).toMatchObject({ status: 404 });
    expect(await refused("POST /v1/responses/input_tokens", { model: "talker", input: "x" })).toMatchObject({
      status: 404,
      error: { type: "not_found", code: "PATH_NOT_FOUND", message: expect.stringContaining("input_tokens") },
    });
    expect(await refused("POST /v1/responses/resp_run_1", {})).toMatchObject({ status: 405 });
  });

  it("tells nobody of the responses of others", async () => {
    const { id } = await create({ model: "talker", input: "mine" });
    for (const request of [
      `GET /v1/responses/${id}`,
      `GET /v1/responses/${id}?stream=true`,
      `POST /v1/responses/${id}/cancel`,
    ])
      expect(await refused(request, undefined, keys.mallory)).toMatchObject({ error: { code: "RUN_NOT_FOUND" } });
    expect(await refused("GET /v1/models", undefined, "no-key-of-anybody")).toMatchObject({
      status: 401,
      error: { type: "authentication_error", code: "CREDENTIALS_INVALID" },
    });
  });
});

it("LOOP-18 what a query asks for is one of two words, or refused", async () => {
  const { id } = await answered(ask(here, "POST /v1/responses", { model: "talker", input: "hi" }));
  const stream = await ask(here, `GET /v1/responses/${id}?stream=True`); // as Python writes it
  expect(await stream.text()).toContain("event: response.completed");
  for (const [query, param] of [
    ["?stream=1", "stream"],
    ["/input_items?order=up", "order"],
  ])
    expect(await (await ask(here, `GET /v1/responses/${id}${query}`)).json()).toMatchObject({ error: { param } });
});

it("LOOP-18 the agents are models", async () => {
  const { data } = await answered(ask(here, "GET /v1/models"));
  expect(data).toContainEqual({ id: "talker", object: "model", created: 0, owned_by: "toolbus" });
  expect(await answered(ask(here, "GET /v1/models/talker"))).toMatchObject({ id: "talker" });
});
