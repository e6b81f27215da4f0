import { create } from "@bufbuild/protobuf";
import type { Command } from "commander";
import {
  CompleteResponseSchema,
  GetPromptResponseSchema,
  ListPromptsResponseSchema,
  McpContentService,
} from "#gen/toolbus/mcp/v1/mcp_content_service_pb.ts";
import { allPages } from "#runtime/rpc/paging/all-pages.ts";
import { UsageFault } from "../../faults/fault.ts";
import { colors, oneLine, printLine, printMessage, printTable } from "../../printing/print.ts";
import { type InSession, inSession, withSessionOptions } from "../../requests/session/in-session.ts";

export function addPromptsCommand(program: Command): void {
  const prompts = program
    .command("prompts")
    .description("List, fill in and complete prompts of an agent's MCP servers");
  const add = (name: string, description: string) =>
    withSessionOptions(prompts.command(name).description(description).argument("<source>", "the MCP server"));
  add("list", "List the prompts of a server").action(listPrompts);
  add("get", "Show a prompt, filled in")
    .argument("<prompt>")
    .argument("[arguments...]", "NAME=VALUE")
    .action(getPrompt);
  add("complete", "List values for an argument of a prompt, or of a template of URIs")
    .argument("<prompt>", "a prompt, or a template as `resources templates` lists it")
    .argument("<argument>", "NAME=BEGINNING")
    .argument("[arguments...]", "the other arguments, NAME=VALUE")
    .action(complete);
}

async function listPrompts(name: string, options: InSession, command: Command): Promise<void> {
  await inSession(name, options, command, async ({ connection, source, signal, json }) => {
    const service = connection.client(McpContentService);
    const pages = await allPages((pageToken) => service.listPrompts({ source, pageToken }, { signal }));
    const prompts = pages.flatMap((page) => page.prompts);
    if (json) return printMessage(ListPromptsResponseSchema, create(ListPromptsResponseSchema, { prompts }));
    const rows = prompts.map(({ name, arguments: given, description }) => [
      name,
      given.map((one) => (one.required ? one.name : `[${one.name}]`)).join(" "),
      oneLine(description),
    ]);
    printTable(["NAME", "ARGUMENTS", "DESCRIPTION"], rows);
  });
}

async function getPrompt(
  name: string,
  prompt: string,
  given: string[],
  options: InSession,
  command: Command,
): Promise<void> {
  const values = Object.fromEntries(given.map(assignmentFrom));
  await inSession(name, options, command, async ({ connection, source, signal, json }) => {
    const asked = { source, name: prompt, arguments: values };
    const filled = await connection.client(McpContentService).getPrompt(asked, { signal });
    if (json) return printMessage(GetPromptResponseSchema, filled);
    for (const { role, contentJson } of filled.messages) {
      const content = JSON.parse(contentJson) as { type?: string; text?: string };
      printLine(`${colors.bold(`${role}:`)} ${content.type === "text" ? content.text : contentJson}`);
    }
  });
}

async function complete(
  name: string,
  prompt: string,
  assigned: string,
  others: string[],
  options: InSession,
  command: Command,
): Promise<void> {
  const [argument, value] = assignmentFrom(assigned);
  const known = Object.fromEntries(others.map(assignmentFrom));
  const isTemplate = prompt.includes("://");
  const reference = { case: isTemplate ? ("uriTemplate" as const) : ("prompt" as const), value: prompt };
  await inSession(name, options, command, async ({ connection, source, signal, json }) => {
    const request = { source, reference, argument, value, arguments: known };
    const completed = await connection.client(McpContentService).complete(request, { signal });
    if (json) return printMessage(CompleteResponseSchema, completed);
    for (const one of completed.values) printLine(one);
  });
}

function assignmentFrom(text: string): [name: string, value: string] {
  const at = text.indexOf("=");
  if (at < 1) throw new UsageFault(`${JSON.stringify(text)} is no NAME=VALUE`);
  return [text.slice(0, at), text.slice(at + 1)];
}
