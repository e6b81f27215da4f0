// OpenAI's client for Python, unmodified. It holds all answers to its types, and what it is streamed to their order, too.

import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Answered, keys, openResponsesDoor } from "../../fixtures/responses-door.ts";
import { findingsIn } from "../../fixtures/stream-findings.ts";

const script = fileURLToPath(new URL("../../fixtures/openai_client.py", import.meta.url));
const uv = process.env.TOOLBUS_UV ?? "uv";
const stack = new AsyncDisposableStack();
let shown: Answered;

beforeAll(async () => {
  const { suite, other } = await openResponsesDoor(stack);
  const asked = ["run", "--quiet", "--no-project", "--with", "openai==3.54.0", "python", script];
  const { stdout } = await promisify(execFile)(uv, [...asked, suite.url, other.url, keys.alice], {
    maxBuffer: 16 * 2 ** 20,
  });
  shown = JSON.parse(stdout);
}, 180_000);
afterAll(() => stack.disposeAsync());

describe("LOOP-18 OpenAI's client for Python", () => {
  it("gets a text", () => expect(shown.text).toBe("You said: hello"));

  it("streams", () => {
    expect(findingsIn(shown.streamed)).toEqual([]);
    expect(shown.streamed.at(-1)).toMatchObject({ type: "response.completed" });
  });

  it("calls its function, and brings the output", () => {
    const { events, call, text } = shown.function;
    expect(findingsIn(events)).toEqual([]);
    expect(call).toMatchObject({ type: "function_call", name: "get_weather", arguments: '{"city":"Bern"}' });
    expect(text).toBe("It is sunny.");
  });

  it("resumes at another gateway what it left, and has the whole without a fault", () => {
    const { seen, events } = shown.resumed;
    expect(events.length).toBeGreaterThan(seen);
    expect(findingsIn(events)).toEqual([]);
  });

  it("cancels what runs in the background", () => {
    expect(findingsIn(shown.canceled.events)).toEqual([]);
    expect(shown.canceled.status).toBe("cancelled");
  });

  it("has its own errors for refusals, with the reason as their code", () => {
    expect(shown.refused).toEqual([
      ["NotFoundError", 404, "AGENT_NOT_FOUND", "model"],
      ["AuthenticationError", 401, expect.any(String), ""],
    ]);
  });

  it("completes chats, whole and streamed", () => {
    expect(shown.completed).toEqual(["You said: hello", "You said: hello"]);
  });
});
