/** What a client asks of one run: refused before a model is called where it cannot be met. */

import type { Agent, Limits } from "#gen/toolbus/agent/v1/agent_pb.ts";
import type { RunOptions } from "#gen/toolbus/run/v1/run_pb.ts";
import type { RunServers } from "#runtime/config/run-servers.ts";
import { type FieldViolation, refuse } from "#runtime/failure/failure.ts";
import type { OnBehalfOptions } from "#runtime/rpc/bus/client-on-behalf.ts";
import { faultOfCost } from "../../loop/limits/limits.ts";
import { faultsOfFunctionTools } from "../../loop/tools/function-tools.ts";
import { faultsOfRunServers, placeOfServer } from "../../loop/tools/run-servers.ts";
import type { ToolRouter } from "../../loop/tools/tool-router.ts";
import { createToolTable, faultsOfOptions } from "../../loop/tools/tool-table.ts";

export interface OptionsPolicy {
  readonly router: ToolRouter;
  /** Which MCP servers runs may bring along. */
  readonly runServers: RunServers;
}

/** Whose next run it is. */
interface NextRun {
  readonly sessionId: string;
  readonly agent: string;
  readonly readAgent: () => Promise<Agent>;
  readonly by: OnBehalfOptions;
}

/** What a run brings along, of which it can be told before there is a session whether it fits. */
export async function refuseUnfitBrought(
  { runServers }: OptionsPolicy,
  options: RunOptions | undefined,
  principal: string,
): Promise<void> {
  if (options === undefined) return;
  await refuseUnfitFunctionTools(options, principal);
  refuseFields(faultsOfRunServers(options, runServers));
}

export async function refuseUnfitOptions(
  { router }: OptionsPolicy,
  options: RunOptions | undefined,
  run: NextRun,
): Promise<void> {
  if (options === undefined) return;
  if (options.limits?.maxCost !== undefined) refuseUncounted(await run.readAgent(), options.limits);
  await refuseUnknownTools(router, options, run);
  if (options.mcpServers.length > 0) refuseFields(faultsOfServerNames(options, await run.readAgent()));
}

/** LOOP-12: checked before the run exists; the agent's own limit is checked by the run. */
function refuseUncounted(agent: Agent, limits: Limits): void {
  const fault = faultOfCost(agent, limits, "options.limits.");
  if (fault === undefined) return;
  const { reason, mend } = refusalOfFault[fault.kind];
  refuse("failed_precondition", `${fault.text}; ${mend}`, { reason, metadata: { field: "options.limits.max_cost" } });
}

const refusalOfFault = {
  unpriced: {
    reason: "MODEL_PRICE_MISSING",
    mend: "give it one in the agent's configuration (0 for what is free), or leave max_cost out",
  },
  currency: {
    reason: "CURRENCY_MISMATCH",
    mend: "the prices and limits of an agent and of its runs are in one currency",
  },
} as const;

async function refuseUnfitFunctionTools({ functionTools }: RunOptions, principal: string): Promise<void> {
  const names = functionTools.map(({ name }) => name);
  const unfit = names.find((name) => !/^[a-zA-Z0-9_-]{1,64}$/.test(name)); // requests on the bus were not validated before
  if (unfit !== undefined)
    refuseFunctionTool(`the function tool ${JSON.stringify(unfit)} has a name that no model takes`);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) refuseFunctionTool(`two function tools are called ${JSON.stringify(twice)}`);
  refuseFields(await faultsOfFunctionTools(functionTools, principal));
}

/** LOOP-2, LOOP-3. */
async function refuseUnknownTools(router: ToolRouter, options: RunOptions, run: NextRun): Promise<void> {
  const { functionTools, allowedTools, toolChoice, limits } = options;
  const stops = (limits?.stopAtTools.length ?? 0) > 0;
  const namesTools = allowedTools !== undefined || toolChoice?.choice.case === "forcedTool" || stops;
  if (!namesTools && functionTools.length === 0) return;
  const scope = namesTools
    ? { case: "session" as const, value: { sessionId: run.sessionId } }
    : { case: "agent" as const, value: run.agent };
  // names of tools are the session's; the built-ins are every agent's, and its list costs the session nothing
  const listed = await router.listTools({ scope }, run.by);
  const { isBuiltIn } = createToolTable(listed, undefined);
  const shadowed = functionTools.find(({ name }) => isBuiltIn(name)); // TOOL-12
  if (shadowed !== undefined)
    refuseFunctionTool(`the function tool ${JSON.stringify(shadowed.name)} is named like a tool of every agent`);
  refuseFields(faultsOfOptions(createToolTable(listed, options), options));
}

/** Servers of the run that are named like sources of the agent. */
function faultsOfServerNames({ mcpServers }: RunOptions, { name: agent, sources, tools }: Agent): FieldViolation[] {
  const used = (tools?.use ?? []).flatMap((reference) => /^@([^/]+)\//.exec(reference)?.[1] ?? []);
  const taken = new Set([...sources.map(({ name }) => name), ...used]);
  return mcpServers.flatMap(({ name }, index) => {
    const message = `the MCP server "${name}" of the run is named like the source "${name}" of agent ${JSON.stringify(agent)}`;
    return taken.has(name) ? [{ field: `${placeOfServer(index)}.name`, message }] : [];
  });
}

function refuseFunctionTool(message: string): void {
  refuseFields([{ field: "options.function_tools", message }]);
}

function refuseFields(fieldViolations: readonly FieldViolation[]): void {
  if (fieldViolations.length === 0) return;
  const message = fieldViolations.map((fault) => fault.message).join("; ");
  refuse("invalid_argument", message, { reason: "INVALID_REQUEST", fieldViolations });
}
