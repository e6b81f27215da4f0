import { create } from "@bufbuild/protobuf";
import type { Command } from "commander";
import {
  ListResourcesResponseSchema,
  ListResourceTemplatesResponseSchema,
  McpContentService,
  ReadResourceResponseSchema,
} from "#gen/toolbus/mcp/v1/mcp_content_service_pb.ts";
import { allPages } from "#runtime/rpc/paging/all-pages.ts";
import { oneLine, printLine, printMessage, printTable } from "../../printing/print.ts";
import { resultOutput } from "../../printing/terminal.ts";
import { type InSession, inSession, withSessionOptions } from "../../requests/session/in-session.ts";

export function addResourcesCommand(program: Command): void {
  const resources = program.command("resources").description("List and read resources of an agent's MCP servers");
  const add = (name: string, description: string) =>
    withSessionOptions(resources.command(name).description(description).argument("<source>", "the MCP server"));
  add("list", "List the resources of a server").action(listResources);
  add("templates", "List the templates of a server's resources").action(listTemplates);
  add("read", "Write a resource to standard output").argument("<uri>").action(readResource);
}

async function listResources(name: string, options: InSession, command: Command): Promise<void> {
  await inSession(name, options, command, async ({ connection, source, signal, json }) => {
    const service = connection.client(McpContentService);
    const pages = await allPages((pageToken) => service.listResources({ source, pageToken }, { signal }));
    const resources = pages.flatMap((page) => page.resources);
    if (json) return printMessage(ListResourcesResponseSchema, create(ListResourcesResponseSchema, { resources }));
    const rows = resources.map(({ uri, name, mimeType, description }) => [uri, name, mimeType, oneLine(description)]);
    printTable(["URI", "NAME", "TYPE", "DESCRIPTION"], rows);
  });
}

async function listTemplates(name: string, options: InSession, command: Command): Promise<void> {
  await inSession(name, options, command, async ({ connection, source, signal, json }) => {
    const service = connection.client(McpContentService);
    const pages = await allPages((pageToken) => service.listResourceTemplates({ source, pageToken }, { signal }));
    const resourceTemplates = pages.flatMap((page) => page.resourceTemplates);
    const schema = ListResourceTemplatesResponseSchema;
    if (json) return printMessage(schema, create(schema, { resourceTemplates }));
    const rows = resourceTemplates.map((one) => [one.uriTemplate, one.name, one.mimeType, oneLine(one.description)]);
    printTable(["TEMPLATE", "NAME", "TYPE", "DESCRIPTION"], rows);
  });
}

async function readResource(name: string, uri: string, options: InSession, command: Command): Promise<void> {
  await inSession(name, options, command, async ({ connection, source, signal, json }) => {
    const read = await connection.client(McpContentService).readResource({ source, uri }, { signal });
    if (json) return printMessage(ReadResourceResponseSchema, read);
    for (const { content } of read.contents) {
      if (content.case === "blob") resultOutput().write(content.value);
      else printLine(content.value ?? "");
    }
  });
}
