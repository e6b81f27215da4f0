import { createClient, createRouterTransport } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { ToolProviderService } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { createRoutes, type Routes } from "./routes.ts";

test("ORCH-1 the connections of an agent that a session leaves are closed also where its subscriptions cannot be removed", async () => {
  const released: object[] = [];
  const parts = {
    subscriptions: { drop: () => Promise.reject(new Error("the store is away")) },
    fleet: {
      release: async (holder: object) => {
        released.push(holder);
        return 1;
      },
    },
  };
  const client = createClient(ToolProviderService, createRouterTransport(createRoutes(parts as unknown as Routes)));
  await expect(client.releaseScope({ scope: { sessionId: "s1", agent: "a1" } })).rejects.toThrow();
  expect(released).toEqual([{ sessionId: "s1", agent: "a1", runId: "" }]);
});
