import { Code, ConnectError, createClient, createRouterTransport } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { RunContextService } from "#gen/toolbus/internal/space/v1/run_context_service_pb.ts";
import { type MemoryParts, runContextRoutes } from "./memory-routes.ts";

test("ORCH-1 who does not own the session is told that alone, also when its context cannot be read", async () => {
  const ownerFor = async () => {
    await new Promise(setImmediate);
    throw new ConnectError("it belongs to another caller", Code.PermissionDenied);
  };
  const runContext = () => Promise.reject(new ConnectError("its memory is unreadable", Code.DataLoss));
  const routes = runContextRoutes({ runContext, sessions: { ownerFor } } as unknown as MemoryParts);
  const transport = createRouterTransport(({ service }) => void service(RunContextService, routes));
  const asked = createClient(RunContextService, transport).getRunContext({ sessionId: "alices", agent: "writer" });
  await expect(asked).rejects.toMatchObject({ code: Code.PermissionDenied });
});
