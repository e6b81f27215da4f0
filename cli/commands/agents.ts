import { readFile } from "node:fs/promises";
import { create, type JsonObject } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { type Command, InvalidArgumentError } from "commander";
import {
  AgentService,
  ApplyAgentResponseSchema,
  DeleteAgentResponseSchema,
  ListAgentsResponseSchema,
  StoredAgentSchema,
} from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { agentFromFile, placedInFile } from "#runtime/agent-file/agent-from-file.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { allPages } from "#runtime/rpc/paging/all-pages.ts";
import { globalOptionsOf, openConnection } from "../connection.ts";
import { UsageFault } from "../faults/fault.ts";
import { colors, oneLine, printError, printLine, printMessage, printTable } from "../printing/print.ts";

const EXPECTED = "only if it stands at this revision, as `agents show` tells it; 0: only if there is none yet";

export function addAgentsCommand(program: Command): void {
  const agents = program.command("agents").description("List, show, apply or delete agents");
  agents.command("list", { isDefault: true }).description("List all agents").action(listAgents);
  agents.command("show").description("Show an agent's configuration").argument("<name>").action(showAgent);
  agents
    .command("apply")
    .description("Create or replace an agent from its JSON file, in the form of a project's or the contract's")
    .argument("<file>")
    .option("--dry-run", "check only")
    .option("--revision <number>", EXPECTED, parseRevision)
    .action(applyAgent);
  agents
    .command("delete")
    .description("Remove an agent")
    .argument("<name>")
    .option("--revision <number>", "only if it stands at this revision", parseRevision)
    .action(deleteAgent);
}

function parseRevision(text: string): bigint {
  if (!/^\d{1,18}$/.test(text)) throw new InvalidArgumentError("is no revision");
  return BigInt(text);
}

interface ApplyOptions {
  dryRun?: boolean;
  revision?: bigint;
}

async function listAgents(_options: object, command: Command): Promise<void> {
  const global = globalOptionsOf(command);
  const service = openConnection(global).client(AgentService);
  const pages = await allPages((pageToken) => service.listAgents({ pageToken }));
  const agents = pages.flatMap((page) => page.agents);
  const refusedFiles = pages.flatMap((page) => page.refusedFiles);
  if (global.json) {
    return printMessage(ListAgentsResponseSchema, create(ListAgentsResponseSchema, { agents, refusedFiles }));
  }
  const rows = agents.map(({ agent, origin, warnings }) => [
    agent?.name ?? "",
    `${agent?.model?.provider}:${agent?.model?.model}`,
    origin,
    warnings.length === 0 ? "" : `${warnings.length} warning(s)`,
    oneLine(agent?.description ?? ""),
  ]);
  printTable(["NAME", "MODEL", "FROM", "STATE", "DESCRIPTION"], rows);
  for (const { agent, warnings } of agents.filter((one) => one.warnings.length > 0)) {
    printError(colors.yellow(`${agent?.name} has warnings`));
    for (const warning of warnings) printError(`  ${warning}`);
  }
  for (const { file, faults } of refusedFiles) {
    printError(colors.red(`${file} is refused`));
    for (const fault of faults) printError(`  ${fault}`);
  }
}

async function showAgent(name: string, _options: object, command: Command): Promise<void> {
  const { agent } = await openConnection(globalOptionsOf(command)).client(AgentService).getAgent({ name });
  if (agent === undefined) return;
  printMessage(StoredAgentSchema, agent);
  for (const warning of agent.warnings) printError(colors.yellow(warning));
}

async function applyAgent(file: string, options: ApplyOptions, command: Command): Promise<void> {
  const { agent, placed } = await readAgent(file);
  const global = globalOptionsOf(command);
  const service = openConnection(global).client(AgentService);
  const { dryRun: validateOnly = false, revision } = options;
  const expected = revision === undefined ? {} : { expectedRevision: revision };
  const response = await service.applyAgent({ agent, validateOnly, ...expected }).catch((error: unknown) => {
    const isOfFile = error instanceof ConnectError && error.code === Code.InvalidArgument;
    throw isOfFile ? new UsageFault(placed(error.rawMessage), { cause: error }) : error;
  });
  if (global.json) return printMessage(ApplyAgentResponseSchema, response);
  for (const warning of response.agent?.warnings ?? []) printError(colors.yellow(warning));
  printLine(`${agent.name} ${validateOnly ? "is valid" : "applied"}`);
}

async function readAgent(file: string) {
  try {
    const json = JSON.parse((await readFile(file, "utf8")).replace(/^\uFEFF/, "")) as JsonObject;
    return { agent: agentFromFile(json), placed: (faults: string) => placedInFile(json, faults) };
  } catch (cause) {
    throw new UsageFault(`${file} is no agent: ${messageFromUnknown(cause)}`, { cause });
  }
}

async function deleteAgent(name: string, { revision }: ApplyOptions, command: Command): Promise<void> {
  const expected = revision === undefined ? {} : { expectedRevision: revision };
  const global = globalOptionsOf(command);
  const response = await openConnection(global)
    .client(AgentService)
    .deleteAgent({ name, ...expected });
  if (global.json) return printMessage(DeleteAgentResponseSchema, response);
  printLine(`${name} deleted`);
}
