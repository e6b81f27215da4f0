import {
  type GetPromptResult,
  type Prompt as McpPrompt,
  ProtocolError,
  type Server,
} from "@modelcontextprotocol/server";
import type { Prompt } from "#gen/toolbus/mcp/v1/mcp_content_service_pb.ts";
import { JSON_RPC } from "../http/refusals.ts";
import { describedFrom } from "./described.ts";
import { type AgentSources, refuseUnlisted, Search } from "./sources.ts";

/** Stands between a source and the name of its prompt, as in the names of tools. */
const SEPARATOR = "__";

/** Prompts of all the agent's servers, each under its source's name, and the completion of their arguments. */
export function servePrompts(server: Server, sources: AgentSources): void {
  const { content, options } = sources;
  server.setRequestHandler("prompts/list", async () => {
    const found = await sources.prompts();
    const prompts = found.flatMap(({ source, items }) => items.map((one) => promptFrom(source.source, one)));
    return { prompts, ...sources.ttlOf(found) };
  });
  server.setRequestHandler("prompts/get", async ({ params }) => {
    const { source, name } = await promptOf(params.name, sources);
    const answer = await content.getPrompt({ source, name, arguments: params.arguments ?? {} }, options);
    const messages = answer.messages.map(({ role, contentJson }) => ({ role, content: JSON.parse(contentJson) }));
    const described = answer.description !== "" && { description: answer.description };
    return { ...described, messages } as GetPromptResult; // checked by the SDK, as the server wrote them
  });
  server.setRequestHandler("completion/complete", async ({ params: { ref, argument, context } }) => {
    const of = ref.type === "ref/prompt" ? await promptOf(ref.name, sources) : await templateOf(ref.uri, sources);
    const reference = { case: ref.type === "ref/prompt" ? "prompt" : "uriTemplate", value: of.name } as const;
    const known = { argument: argument.name, value: argument.value, arguments: context?.arguments ?? {} };
    const { values, total, hasMore } = await content.complete({ source: of.source, reference, ...known }, options);
    return { completion: { values, hasMore, ...(total !== undefined && { total }) } };
  });
}

/** By the name that it is listed under, or its server's own, where no other server has one of that name. */
async function promptOf(name: string, sources: AgentSources) {
  using search = new Search();
  const lists = await sources.prompts({ search, fits: (prompt, source) => nameOf(source, prompt) === name });
  const all = lists.flatMap(({ source, items }) => items.map((prompt) => ({ source, prompt })));
  const found = all.find(({ source, prompt }) => nameOf(source.source, prompt) === name) ?? sole(all, name);
  if (found) return { source: found.source, name: found.prompt.name };
  return refuseUnlisted(lists, noSuch("prompt", name));
}

function sole<T extends { prompt: Prompt }>(all: readonly T[], name: string): T | undefined {
  const named = all.filter(({ prompt }) => prompt.name === name);
  return named.length === 1 ? named[0] : undefined;
}

async function templateOf(uri: string, sources: AgentSources) {
  using search = new Search();
  const lists = await sources.templates({ search, fits: ({ uriTemplate }) => uriTemplate === uri });
  const owner = lists.find(({ items }) => items.some(({ uriTemplate }) => uriTemplate === uri));
  if (owner) return { source: owner.source, name: uri };
  return refuseUnlisted(lists, noSuch("template", uri));
}

function noSuch(kind: string, name: string): ProtocolError {
  return new ProtocolError(JSON_RPC.invalidParams, `there is no ${kind} ${JSON.stringify(name.slice(0, 128))}`);
}

function nameOf(source: string, { name }: Prompt): string {
  return `${source}${SEPARATOR}${name}`;
}

function promptFrom(source: string, prompt: Prompt): McpPrompt {
  const given = prompt.arguments.map(({ name, title, description, required }) => ({
    name,
    ...describedFrom({ title, description, icons: [] }),
    required,
  }));
  return { name: nameOf(source, prompt), ...describedFrom(prompt), ...(given.length > 0 && { arguments: given }) };
}
