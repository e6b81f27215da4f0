// Servers that were allowed once: one that becomes another, and one that is no longer wanted.

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { McpServerService } from "#gen/toolbus/mcp/v1/mcp_server_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { until } from "#runtime/time/until.ts";
import { gatewayAt } from "../../../system/access/world.ts";
import type { Attack } from "../../attack.ts";
import { callTool } from "../../suite/call-tool.ts";

const turncoat = fileURLToPath(new URL("../../../system/security/turncoat-server.ts", import.meta.url));
const model = { provider: "scripted", model: "keeper.json" };
const patience = { timeoutMs: 45_000, intervalMs: 50 };

export const turncoats: readonly Attack[] = [
  {
    name: "a pinned server that changes what its tool says and wants",
    requirement: "SEC-4",
    async play({ url, keys }) {
      const [olga, mallory] = [gatewayAt(url, keys.olga), gatewayAt(url, keys.mallory)];
      const name = `turns-${Date.now()}`;
      const config = { name, stdio: { command: process.execPath, args: [turncoat] } };
      const sources = [{ name: "sums", provider: "mcp", pin: true, config }];
      await olga.client(AgentService).applyAgent({ agent: { name, model, sources, tools: { use: ["@sums/*"] } } });
      await mallory.client(SessionService).createSession({ agent: name, sessionId: name });
      const tools = mallory.client(ToolService);
      const call = (tool: string, argumentsJson: string) =>
        callTool(mallory, { sessionId: name, name: `@sums/${tool}`, argumentsJson }).catch(messageFromUnknown);
      const add = async () => {
        const { tools: listed } = await tools.listTools({ scope: { case: "session", value: { sessionId: name } } });
        return listed.find(({ reference }) => reference === "@sums/add");
      };
      await until(async () => (await add())?.callable, { ...patience, what: "the tool to be there" });
      const before = await call("add", '{"a":1,"b":2}');
      if (!before.includes("done")) throw new Error(`the tool does not work: ${before}`);
      await call("turn", "{}");
      // Until its new list has come, the tool is what it was, to the model too.
      const noticed = async () => (await add())?.callable === false;
      await until(noticed, { ...patience, what: "the change to be noticed" });
      const reached: string[] = [];
      for (let n = 0; n < 10; n++) {
        const listed = await add();
        if (listed?.tool?.description.includes("id_rsa")) reached.push("the model is shown the new description");
        if ((await call("add", '{"a":1,"b":2,"note":"key"}')).includes("done"))
          reached.push("the changed tool was called");
      }
      const approved = await tools.approveTools({ agent: name }).then(
        () => "approved",
        (error) => failureFromConnectError(error).code,
      );
      if (approved !== "permission_denied") reached.push(`mallory's approval: ${approved}`);
      await olga.client(AgentService).deleteAgent({ name });
      return { tries: 22, reached };
    },
  },
  {
    name: "a failing server that is started again after it was deleted",
    requirement: "SEC-3",
    async play({ url, keys, directories }, { isShort }) {
      const olga = gatewayAt(url, keys.olga);
      const servers = olga.client(McpServerService);
      const name = `falls-${Date.now()}`;
      const file = join(directories.files, name);
      const starts = async () => (await readFile(file, "utf8").catch(() => "")).length;
      const args = ["-c", `printf x >> ${file}; sleep 0.1; exit 1`];
      await servers.applyMcpServer({ server: { name, transport: { case: "stdio", value: { command: "sh", args } } } });
      await olga.client(AgentService).applyAgent({ agent: { name, model, tools: { use: [`@${name}/*`] } } });
      await olga.client(SessionService).createSession({ agent: name, sessionId: name });
      const ask = () => olga.client(ToolService).listTools({ scope: { case: "session", value: { sessionId: name } } });
      await until(
        async () => {
          await ask().catch(() => undefined);
          return (await starts()) > 0;
        },
        { ...patience, what: "the server to be started" },
      );
      await servers.deleteMcpServer({ name });
      await pause(500); // what was on its way
      const before = await starts();
      for (let n = 0; n < (isShort ? 4 : 20); n++) {
        await Promise.all([pause(500), ask().catch(() => undefined)]);
      }
      const more = (await starts()) - before;
      return { tries: before, reached: more > 0 ? [`it was started ${more} more times`] : [] };
    },
  },
];
