import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { ExecuteToolRequestSchema } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { createRunCall } from "../tool-calls.ts";
import { createSpread } from "./spread-calls.ts";

test("LOOP-15 a call that is canceled while other instances are asked for the worker is not begun", async () => {
  const canceling = new AbortController();
  const begun: string[] = [];
  const own = createRunCall(async ({ callId }) => {
    begun.push(callId);
    return { kind: "result", resultJson: "1" };
  });
  const { run } = createSpread({
    own,
    callsOfWorker: 1,
    hasFile: () => true,
    pool: { hasRoom: () => false, isWarm: () => false },
    fleet: {
      async elsewhere() {
        canceling.abort(new Error("the caller has left"));
        return { warm: [], cold: [] };
      },
    },
    runAt: () => expect.fail("there is no other instance"),
    hasNotBegun: () => false,
  });
  const request = create(ExecuteToolRequestSchema, { callId: "one", source: { name: "tool" }, tool: "f" });
  const running = Array.fromAsync(run(request, { traceId: "", signal: canceling.signal, isWarmOnly: false }));
  await expect(running).rejects.toThrow("the caller has left");
  expect(begun).toEqual([]);
});
