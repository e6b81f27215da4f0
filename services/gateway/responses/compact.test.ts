import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { create } from "@bufbuild/protobuf";
import { expect, it } from "vitest";
import { RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { WatchRunResponseSchema } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { createResponsesDoor } from "./responses-door.ts";
import type { ResponsesParts } from "./responses-exchange.ts";

it.each([
  [RunState.FAILED, 503, null],
  [RunState.CANCELED, 409, "false"],
] as const)(
  "LOOP-18 a summary whose run ended in state %d is told by %d, and its run is named",
  async (state, status, retry) => {
    const { takes } = createResponsesDoor({
      enter: async () => ({ principal: "alice" }),
      runs: {
        createRun: async () => ({ run: { id: "r1" } }),
        async *watchRun({ runId }: { runId: string }) {
          const logged = (sequence: number, event: object) =>
            create(WatchRunResponseSchema, {
              update: { case: "event", value: { runId, sequence, event: event as never } },
            });
          yield logged(1, { case: "accepted", value: { agent: "clerk", options: {} } });
          yield logged(2, { case: "ended", value: { state } });
        },
      },
      onFault: () => {},
      maxBytes: 10_000,
    } as unknown as ResponsesParts);
    const server = createServer((request, response) => void takes(request, response, request));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/responses/compact`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "clerk", input: "go" }),
    });
    server.close();
    expect([answer.status, answer.headers.get("x-should-retry")]).toEqual([status, retry]);
    expect(answer.headers.get("x-request-id")).toBe("r1");
  },
);
