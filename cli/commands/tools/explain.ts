import type { Command } from "commander";
import {
  ExplainStageSchema,
  type ExplainToolResponse,
  ExplainToolResponseSchema,
  ToolService,
} from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { refuseLocally } from "#runtime/failure/local-failure.ts";
import { globalOptionsOf, openConnection } from "../../connection.ts";
import { codeOfValue, colors, printLines, printMessage } from "../../printing/print.ts";

export function addExplainCommand(program: Command): void {
  program
    .command("explain")
    .description("Explain why an agent can or cannot call a tool")
    .argument("<agent>", "the agent's name")
    .argument("<tool>", "name, alias or reference")
    .option(
      "-s, --session <id>",
      "in this session, whose caller's tools and space count, instead of the agent by itself",
    )
    .action(explain);
}

async function explain(agent: string, name: string, options: { session?: string }, command: Command): Promise<void> {
  const global = globalOptionsOf(command);
  const { session } = options;
  const scope = session
    ? { case: "session" as const, value: { sessionId: session } }
    : { case: "agent" as const, value: agent };
  const response = await openConnection(global).client(ToolService).explainTool({ scope, name });
  if (response.agent !== agent)
    refuseLocally("failed_precondition", `session ${session} has agent "${response.agent}", not "${agent}"`);
  if (global.json) return printMessage(ExplainToolResponseSchema, response);
  printLines(linesOfExplanation(agent, name, response));
}

/** The way from the name to the decision, a stage a line, then what came of it. */
export function linesOfExplanation(agent: string, name: string, response: ExplainToolResponse): string[] {
  const { reference, modelName, aliases, closestNames, callable, rule } = response;
  const also = aliases.filter((alias) => alias !== name);
  return [
    ...(reference === ""
      ? []
      : [`${colors.bold(reference)}${modelName === "" ? "" : `, which models call ${modelName}`}`]),
    ...(also.length === 0 ? [] : [`aliases: ${also.join(", ")}`]),
    ...response.steps.map(
      ({ stage, finding, passed }) =>
        `${passed ? colors.green("✓") : colors.red("✗")} ${codeOfValue(ExplainStageSchema, stage).padEnd(12)} ${finding}`,
    ),
    callable ? colors.green(`callable by ${agent}`) : colors.red(`not callable by ${agent}: ${rule}`),
    ...(closestNames.length === 0 ? [] : [`closest that it may call: ${closestNames.join(", ")}`]),
  ];
}
