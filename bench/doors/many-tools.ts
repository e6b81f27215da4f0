/** An MCP server of 500 tools as servers have them: a sentence or two each, and a handful of parameters. */
import { Server } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

const services = ["crm", "wiki", "mail", "calendar", "billing", "tickets", "deploy", "storage", "metrics", "people"];
const nouns = ["account", "comment", "document", "invoice", "label", "message", "project", "report", "task", "user"];
const verbs = {
  list: "Lists those that match a filter, a page at a time, the latest first.",
  get: "Returns one of them with all its fields and the names of those who may change it.",
  create: "Creates one, and returns it with its id. Whoever follows the parent is notified.",
  update: "Changes the given fields of one, and leaves all others as they are.",
  delete: "Removes one for good, with everything that belongs to it. This cannot be undone.",
};

const text = (description: string) => ({ type: "string", description });
const parametersOf = (verb: string, noun: string) => ({
  type: "object" as const,
  properties: {
    [`${noun}_id`]: text(`Id of the ${noun}, as a listing tells it.`),
    workspace: text("The workspace that it belongs to; the default one unless given."),
    ...(verb === "list" && {
      filter: text("Words that a title or a text has to hold; empty for all."),
      limit: { type: "integer", minimum: 1, maximum: 100, description: "At most so many; 20 unless given." },
    }),
    ...((verb === "create" || verb === "update") && {
      title: text("A line that says what it is."),
      fields: { type: "object", additionalProperties: { type: "string" }, description: "Further fields, by name." },
      visibility: { type: "string", enum: ["private", "team", "public"], description: "Who may see it." },
    }),
  },
  required: verb === "list" || verb === "create" ? [] : [`${noun}_id`],
});

const tools = services.flatMap((service) =>
  nouns.flatMap((noun) =>
    Object.entries(verbs).map(([verb, about]) => ({
      name: `${service}_${verb}_${noun}`,
      description: `${about} Works on each ${noun} of the ${service} service.`,
      inputSchema: parametersOf(verb, noun),
      annotations: { readOnlyHint: verb === "list" || verb === "get", destructiveHint: verb === "delete" },
    })),
  ),
);

serveStdio(() => {
  const server = new Server({ name: "many", version: "1" }, { capabilities: { tools: {} } });
  server.setRequestHandler("tools/list", () => ({ tools }));
  server.setRequestHandler("tools/call", ({ params: { name } }) => ({ content: [{ type: "text", text: name }] }));
  return server;
});
