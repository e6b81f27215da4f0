import { readFile } from "node:fs/promises";
import type { JsonObject } from "@bufbuild/protobuf";
import type { Command } from "commander";
import type { Agent } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { AgentService, ListAgentsResponseSchema, StoredAgentSchema } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { agentFromFile } from "#runtime/agent-file/agent-from-file.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { globalOptionsOf, openConnection } from "../connection.ts";
import { UsageFault } from "../fault.ts";
import { colors, oneLine, printLine, printMessage, printTable } from "../print.ts";

export function addAgentsCommand(program: Command): void {
  const agents = program.command("agents").description("List, show, apply or delete agents");
  agents.command("list", { isDefault: true }).description("List all agents").action(listAgents);
  agents.command("show").description("Show an agent's configuration").argument("<name>").action(showAgent);
  agents
    .command("apply")
    .description("Create or replace an agent from its JSON file, in the form of examples/agents or the contract's")
    .argument("<file>")
    .option("--dry-run", "check only")
    .action(applyAgent);
  agents.command("delete").description("Remove an agent").argument("<name>").action(deleteAgent);
}

async function listAgents(_options: object, command: Command): Promise<void> {
  const global = globalOptionsOf(command);
  const response = await openConnection(global).client(AgentService).listAgents({});
  if (global.json) return printMessage(ListAgentsResponseSchema, response);
  const rows = response.agents.map(({ agent, origin, warnings }) => [
    agent?.name ?? "",
    `${agent?.model?.provider}:${agent?.model?.model}`,
    origin,
    warnings.length === 0 ? "" : `${warnings.length} warning(s)`,
    oneLine(agent?.description ?? ""),
  ]);
  printTable(["NAME", "MODEL", "FROM", "STATE", "DESCRIPTION"], rows);
  for (const { agent, warnings } of response.agents.filter((one) => one.warnings.length > 0)) {
    process.stderr.write(`${colors.yellow(`${agent?.name} has warnings`)}\n`);
    for (const warning of warnings) process.stderr.write(`  ${warning}\n`);
  }
  for (const { file, faults } of response.refusedFiles) {
    process.stderr.write(`${colors.red(`${file} is refused`)}\n`);
    for (const fault of faults) process.stderr.write(`  ${fault}\n`);
  }
}

async function showAgent(name: string, _options: object, command: Command): Promise<void> {
  const { agent } = await openConnection(globalOptionsOf(command)).client(AgentService).getAgent({ name });
  if (agent === undefined) return;
  printMessage(StoredAgentSchema, agent);
  for (const warning of agent.warnings) process.stderr.write(`${colors.yellow(warning)}\n`);
}

async function applyAgent(file: string, options: { dryRun?: boolean }, command: Command): Promise<void> {
  const agent = await readAgent(file);
  const service = openConnection(globalOptionsOf(command)).client(AgentService);
  const response = await service.applyAgent({ agent, validateOnly: options.dryRun ?? false });
  for (const warning of response.agent?.warnings ?? []) process.stderr.write(`${colors.yellow(warning)}\n`);
  printLine(`${agent.name} ${options.dryRun ? "is valid" : "applied"}`);
}

async function readAgent(file: string): Promise<Agent> {
  try {
    return agentFromFile(JSON.parse((await readFile(file, "utf8")).replace(/^\uFEFF/, "")) as JsonObject);
  } catch (cause) {
    throw new UsageFault(`${file} is no agent: ${messageFromUnknown(cause)}`, { cause });
  }
}

async function deleteAgent(name: string, _options: object, command: Command): Promise<void> {
  await openConnection(globalOptionsOf(command)).client(AgentService).deleteAgent({ name });
  printLine(`${name} deleted`);
}
