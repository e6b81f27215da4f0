// Runs clients that are not the suite's own against a suite of their own: `npx node examples/clients/main.ts [python|go|grpcurl|browser …]`.

import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { until } from "#runtime/time/until.ts";
import { openConnection } from "../../cli/connection.ts";
import { colors, printLine, printNote } from "../../cli/printing/print.ts";
import { openSuite } from "../../cli/suite/suite.ts";
import { freePort } from "../free-port.ts";
import { clients, faultOf } from "./clients.ts";

const wanted = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(clients);
const unknown = wanted.filter((key) => clients[key] === undefined);
if (unknown.length > 0)
  throw new Error(`no client ${unknown.join(", ")}; there are ${Object.keys(clients).join(", ")}`);

const pagePort = `${await freePort()}`;
await using suite = await openSuite({
  directory: ".toolbus/clients",
  port: 0,
  reset: true,
  env: { TOOLBUS_CORS_ORIGINS: `http://127.0.0.1:${pagePort}` },
  onProgress: printNote,
});
const tools = openConnection(suite).client(ToolService);
const areAllThere = async () =>
  (await tools.listTools({ scope: { case: "agent", value: "demo" } })).sources.every((source) => source.available);
await until(areAllThere, { timeoutMs: 60_000, what: "the sources of the agent to be up" });

const env = { ...process.env, TOOLBUS_URL: suite.url, TOOLBUS_API_KEY: suite.apiKey, TOOLBUS_PAGE_PORT: pagePort };

for (const key of wanted) {
  const client = clients[key];
  if (client === undefined) continue; // refused above
  printLine(colors.bold(`\n${key}: ${client.name}`));
  const startedAt = performance.now();
  const fault = await faultOf(client, env);
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
  printLine(fault === undefined ? colors.green(`${key} ended well in ${seconds} s`) : colors.red(`${key} ${fault}`));
  if (fault !== undefined) process.exitCode = 1;
}
