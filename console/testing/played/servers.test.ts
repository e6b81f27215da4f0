// MCP servers that need something of a person (ORCH-12).

import type { ConnectRouter } from "@connectrpc/connect";
import { expect, it } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { HealthState, LoginState } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { McpServerService } from "#gen/toolbus/mcp/v1/mcp_server_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { connectError } from "#runtime/failure/connect.ts";
import { left } from "../../../bench/console/played-suite.ts";
import { noCalls, openPlayedStage } from "./stage.ts";

function serveTools(router: ConnectRouter): void {
  noCalls(router);
  const reason = "notes needs login: toolbus mcp login notes";
  const connection = { id: "c", server: "notes", health: HealthState.UNHEALTHY, login: LoginState.NEEDED, reason };
  router.service(AgentService, { listAgents: () => ({ agents: [{ agent: { name: "reader" } }] }) });
  router.service(McpServerService, {
    async *watchConnections(_request, { signal }) {
      yield { connections: [connection] };
      await left(signal);
    },
  });
}

it("are logged in to by a link where the gateway has a page for it, and else by the command", async () => {
  await using stage = await openPlayedStage((router) => {
    serveTools(router);
    router.service(ToolService, { listTools: () => ({}), approveTools: () => ({}) });
  });
  const page = await stage.open("tools/reader");
  const server = page.locator("li", { hasText: "notes needs login: toolbus mcp login notes" });
  const link = server.getByRole("link", { name: "log in" });
  await server.waitFor();
  await page.waitForResponse(/ListTools/); // what is asked when the screen is shown is answered before it is asked again
  expect(await link.count(), "the gateway has no address that browsers come back to").toBe(0);
  await page.route(/\/oauth\/login/, (route) => route.fulfill({ contentType: "text/html", body: "Your key?" }));
  await page.reload();
  await link.waitFor({ timeout: 10_000 });
});

it("SEC-6 what is asked once is asked again when a share was used up", async () => {
  let refusals = 1;
  await using stage = await openPlayedStage((router) => {
    serveTools(router);
    router.service(ToolService, {
      approveTools: () => ({}),
      listTools: () => ({ tools: [{ modelName: "echo" }] }),
      explainTool() {
        if (refusals-- > 0) throw connectError("resource_exhausted", "has its share", { reason: "SHARE_EXCEEDED" });
        return { callable: true };
      },
    });
  });
  const page = await stage.open("tools/reader?tool=echo");
  await page.getByText("may be called").waitFor({ timeout: 15_000 });
  expect(await page.getByRole("alert").getByText("has its share").count()).toBe(0);
});
