import { createRouterTransport } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { openConnection } from "./connection.ts";
import { watchTools } from "./watcher.ts";

test("DOOR-5 a watch that its program's own error ends is left: no call comes to who does not listen", async () => {
  const left = Promise.withResolvers<void>();
  const transport = createRouterTransport(({ service }) => {
    service(ToolCallService, {
      async *watchToolCalls(_, { signal }) {
        signal.addEventListener("abort", () => left.resolve());
        yield { update: { case: "notice", value: { problem: "there is no such tool" } } };
        await left.promise;
      },
    });
  });
  const onNotice = (problem: string) => {
    throw new Error(problem);
  };
  const watch = await watchTools(openConnection({ transport }), { tools: { stock_level: () => 7 }, onNotice });
  await expect(watch.ended).rejects.toThrow("there is no such tool");
  await left.promise;
}, 5_000);
