// OpenAI's clients send a request again by themselves when it fails: one that may have begun a run would begin another.

import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { connectError } from "#runtime/failure/connect.ts";
import { notSent, unknownOutcome } from "#runtime/rpc/nats/call/delivery.ts";
import { createResponsesDoor } from "../responses-door.ts";
import type { ResponsesParts } from "../responses-exchange.ts";

const failures: { createRun?: Error; watchRun?: Error } = {};
const { takes } = createResponsesDoor({
  enter: async () => ({ principal: "alice" }),
  runs: {
    async getRun() {
      throw unknownOutcome("orchestrator fell silent");
    },
    async createRun() {
      if (failures.createRun) throw failures.createRun;
      return { run: { id: "r1" } };
    },
    // biome-ignore lint/correctness/useYield: it has nothing to give but its error
    async *watchRun() {
      throw failures.watchRun;
    },
  },
  onFault: () => {},
  maxBytes: 10_000,
} as unknown as ResponsesParts);
const server = createServer((request, response) => void takes(request, response, request));

beforeAll(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterAll(() => void server.close());

const lost = connectError("internal", "the log of the run cannot be read", { reason: "INTERNAL" });
const asked = {
  "/v1/responses": { input: "go" },
  "/v1/chat/completions": { messages: [{ role: "user", content: "go" }] },
};

it.each([
  ["was not sent", { createRun: notSent("no orchestrator is there") }, {}, null],
  ["may have begun", { createRun: unknownOutcome("orchestrator fell silent") }, {}, "false"],
  ["has begun", { watchRun: lost }, {}, "false"],
  [
    "is the same by its key",
    { createRun: unknownOutcome("orchestrator fell silent") },
    { "idempotency-key": "k" },
    null,
  ],
] as const)(
  "LOOP-18 a request whose run %s says whether it is to be sent again",
  async (_, failing, headers, expected) => {
    Object.assign(failures, { createRun: undefined, watchRun: undefined }, failing);
    for (const [path, body] of Object.entries(asked)) {
      const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify({ model: "clerk", ...body }),
      });
      expect(answer.status, path).toBeGreaterThanOrEqual(500);
      expect(answer.headers.get("x-should-retry"), path).toBe(expected);
    }
  },
);

it("LOOP-18 a request whose former run cannot be read began none, and may be sent again", async () => {
  Object.assign(failures, { createRun: undefined, watchRun: lost });
  const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/responses`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "clerk", input: "go", previous_response_id: "resp_run_1" }),
  });
  expect(answer.status).toBeGreaterThanOrEqual(500);
  expect(answer.headers.get("x-should-retry")).toBe(null);
});

it.each([
  ["failed_precondition", "RUN_ENDED", {}, "false"],
  ["failed_precondition", "CALL_ALREADY_RESOLVED", {}, "false"],
  ["already_exists", "IDEMPOTENCY_KEY_REUSED", {}, "false"],
  ["failed_precondition", "RUN_NOT_ENDED", { run_id: "r1", retry_in_ms: "1000" }, null],
  ["aborted", "SESSION_SWITCHING", {}, null],
] as const)(
  "LOOP-18 a conflict is told again only if that can help: %s, %s, %j",
  async (code, reason, metadata, expected) => {
    Object.assign(failures, { createRun: connectError(code, "no", { reason, metadata }), watchRun: undefined });
    const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/responses`, {
      method: "POST",
      headers: { "content-type": "application/json", "idempotency-key": "k" },
      body: JSON.stringify({ model: "clerk", input: "go" }),
    });
    expect([answer.status, answer.headers.get("x-should-retry")]).toEqual([409, expected]);
  },
);
