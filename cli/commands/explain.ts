import type { Command } from "commander";
import { ExplainToolResponseSchema, ToolRouterService } from "#gen/toolbus/router/v1/tool_router_pb.ts";
import { globalOptionsOf, openConnection } from "../connection.ts";
import { colors, printLine, printMessage } from "../print.ts";

export function addExplainCommand(program: Command): void {
  program
    .command("explain")
    .description("Explain why an agent can or cannot call a tool")
    .argument("<agent>", "the agent's name")
    .argument("<tool>", "name, alias or reference")
    .action(explain);
}

async function explain(agent: string, name: string, _options: object, command: Command): Promise<void> {
  const global = globalOptionsOf(command);
  const response = await openConnection(global).client(ToolRouterService).explainTool({ agent, name });
  if (global.json) return printMessage(ExplainToolResponseSchema, response);
  for (const step of response.steps) {
    printLine(`${step.passed ? colors.green("✓") : colors.red("✗")} ${step.stage.padEnd(12)} ${step.finding}`);
  }
  printLine(response.callable ? colors.green("callable") : colors.red(`not callable: ${response.rule}`));
}
