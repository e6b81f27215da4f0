import { once } from "node:events";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { CallOptions } from "@connectrpc/connect";
import { expect, it } from "vitest";
import { RunAcceptedSchema, RunEventSchema } from "#gen/toolbus/run/v1/run_event_pb.ts";
import {
  type CreateRunRequestSchema,
  type WatchRunResponse,
  WatchRunResponseSchema,
} from "#gen/toolbus/run/v1/run_service_pb.ts";
import { connectError } from "#runtime/failure/connect.ts";
import { serveOnHttp } from "#runtime/rpc/http/server.ts";
import { withDelivery } from "#runtime/rpc/nats/call/delivery.ts";
import { createResponsesDoor } from "../responses-door.ts";
import type { ResponsesParts } from "../responses-exchange.ts";

const chat = { messages: [{ role: "user", content: "go" }] };
const WHERE = /INSTANCE_STOPPING.*GET \/v1\/responses\/resp_r1/;
const NOWHERE = /^(?!.*GET ).*INSTANCE_STOPPING.*the run goes on/s;

type Asked = MessageInitShape<typeof CreateRunRequestSchema>;

/** What a client is answered that asks at a gateway whose time is over once the runs wait. */
async function askWhileItStops(path: string, body: object, runs: (waiting: () => void) => object): Promise<Response> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const enter = async () => ({ principal: "alice" });
  const { takes } = createResponsesDoor({ enter, runs: runs(resolve), maxBytes: 10_000 } as unknown as ResponsesParts);
  const server = await serveOnHttp({ routes() {}, fallback: takes, drainTimeoutMs: 20 });
  const asked = fetch(server.url + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "clerk", ...body }),
  });
  await promise;
  await server[Symbol.asyncDispose]();
  return asked;
}

const stops = () => connectError("unavailable", "it stops", { reason: "INSTANCE_STOPPING" });

it.each([
  ["/v1/responses", { input: "go" }, 503, WHERE],
  ["/v1/responses", { input: "go", stream: true }, 200, WHERE],
  ["/v1/responses", { input: "go", store: false }, 503, NOWHERE],
  ["/v1/chat/completions", chat, 503, NOWHERE],
  ["/v1/chat/completions", { ...chat, stream: true }, 200, NOWHERE],
])(
  "LOOP-18 who waits for a response when its gateway stops is told where it is: %s %j",
  async (path, body, status, told) => {
    let options: Asked["options"];
    const answer = await askWhileItStops(path, body, (waiting) => ({
      async createRun(request: Asked) {
        options = request.options;
        return { run: { id: "r1" } };
      },
      async *watchRun(_: unknown, { signal }: Required<CallOptions>): AsyncGenerator<WatchRunResponse> {
        const accepted = create(RunAcceptedSchema, { options });
        const event = create(RunEventSchema, { sequence: 1, event: { case: "accepted", value: accepted } });
        yield create(WatchRunResponseSchema, { update: { case: "event", value: event } });
        waiting();
        await once(signal, "abort");
        throw stops();
      },
    }));
    expect([answer.status, answer.headers.get("x-should-retry")]).toEqual([status, "false"]);
    expect(await answer.text()).toMatch(told);
  },
);

it("LOOP-18 who has asked a gateway that stops for a run, which may have begun, is told not to ask again", async () => {
  const answer = await askWhileItStops("/v1/responses", { input: "go" }, (waiting) => ({
    async createRun(_: unknown, { signal }: Required<CallOptions>) {
      waiting();
      await once(signal, "abort");
      throw withDelivery(stops(), "UNKNOWN");
    },
  }));
  expect([answer.status, answer.headers.get("x-should-retry")]).toEqual([503, "false"]);
});
