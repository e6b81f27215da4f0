import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { isObject } from "../schema/json-object.ts";
import { itsOwn, type JsonSchema, type MessageSpelling } from "./spelling.ts";

const text = (maxLength: number, description: string): JsonSchema => ({ type: "string", maxLength, description });
const texts = (maxLength: number, name: number, description: string): JsonSchema => ({
  type: "object",
  additionalProperties: { type: "string", maxLength },
  propertyNames: { type: "string", maxLength: name },
  description,
});

const list = "Which of its tools are offered, by their names at the server; absent offers all, an empty list none.";
const secrets = `a value may name secrets as \`\${secret:NAME}\`.`;
const args = { type: "array", maxItems: 1000, items: { type: "string", maxLength: 131072 } };
const written: Record<string, JsonSchema> = {
  transport: text(
    64,
    "stdio, http, sse, ws, tcp, or a registered third party's; absent means what url and command suggest.",
  ),
  url: text(4096, "Where it listens; absent for a command."),
  command: text(4096, "Program to start; absent for a url."),
  args: { ...args, description: "Its arguments." },
  env: { ...texts(131072, 256, `Its environment; ${secrets}`), maxProperties: 1000 },
  headers: { ...texts(65536, 256, `HTTP headers; ${secrets}`), maxProperties: 100 },
};

/** Of the source that the server is. */
export const pin: JsonSchema = {
  type: "boolean",
  description: "Whether each of its tools is held to the definition that was seen first, or approved since.",
};

const arms = ["stdio", "http", "custom"] as const;

/** How files write an MCP server: the fields of its transport stand beside its name, without the transport's own. */
export const serverSpelling: MessageSpelling = {
  fields: {
    ...Object.fromEntries(Object.entries(written).map(([name, schema]) => [name, { schema: () => schema }])),
    allowedTools: {
      field: "allowedTools",
      schema: () => ({ type: "array", items: { type: "string" }, description: list }),
      read: (value) => ({ allowedTools: Array.isArray(value) ? { names: value } : value }),
    },
    share: { field: "share", schema: itsOwn },
    era: { field: "era", schema: itsOwn },
    pin: { schema: () => pin },
  },
  omitted: arms,
  read: serverFromFile,
  schema: {
    oneOf: [{ required: ["url"] }, { required: ["command"] }],
    dependentRequired: { args: ["command"], env: ["command"], headers: ["url"] },
  },
};

/** With its transport as the contract has it. What goes with no transport makes two of them, or one without its address. */
function serverFromFile(file: JsonObject): JsonObject {
  if (!isWrittenFlat(file)) return file;
  const { transport = "", command, args, env, url, headers, ...rest } = file;
  const stdio = given({ command, args, env });
  const http = given({ url, headers });
  const arm = armOf(transport, url);
  if (http !== undefined) return { ...rest, ...(stdio && { stdio }), ...armWith(arm, transport, http) };
  const isOther = transport !== "" && transport !== "stdio";
  return { ...rest, ...(stdio && { stdio }), ...(isOther && armWith(arm, transport, {})) };
}

function armWith(arm: "http" | "custom", name: JsonValue, address: JsonObject): JsonObject {
  return { [arm]: arm === "custom" && name !== "" ? { name, ...address } : address };
}

function armOf(transport: JsonValue, url: JsonValue | undefined): "http" | "custom" {
  if (transport !== "") return transport === "http" ? "http" : "custom";
  return typeof url === "string" && url !== "" ? armOfUrl(url) : "http";
}

/** The transport that a URL suggests. */
export function armOfUrl(url: string): "http" | "custom" {
  return /^https?:/i.test(url) ? "http" : "custom";
}

function given(fields: Record<string, JsonValue | undefined>): JsonObject | undefined {
  const set = Object.entries(fields).filter((entry): entry is [string, JsonValue] => (entry[1] ?? null) !== null);
  return set.length === 0 ? undefined : Object.fromEntries(set);
}

/** Whether a file writes the transport's fields beside the name, and not the transport as the contract has it. */
export function isWrittenFlat(file: JsonObject): boolean {
  return arms.every((arm) => file[arm] === undefined);
}

export interface TransportFault {
  /** As files name it; empty for the transport as a whole. */
  readonly field: string;
  readonly message: string;
}

/** What is wrong with the transport of a server in the contract's JSON, in the words of files. */
export function faultOfTransport(server: JsonObject): TransportFault | undefined {
  const of = (arm: string, field: string) => {
    const value = server[arm];
    return isObject(value) ? (value[field] ?? "") : "";
  };
  const command = of("stdio", "command");
  const url = of("http", "url") || of("custom", "url");
  const name = of("custom", "name") || (server.http === undefined ? "" : "http");
  if (command !== "" && url === "" && name !== "" && of("http", "headers") === "")
    return { field: "transport", message: `${name} needs a url, not a command` };
  if ((command === "") === (url === "")) return { field: "", message: "a server needs either a url or a command" };
  const count = arms.filter((arm) => server[arm] !== undefined).length;
  if (count === 1) return undefined;
  const wrong =
    command === "" ? "args and env go with a command, not with a url" : "headers go with a url, not with a command";
  return { field: "", message: wrong };
}

/** The path of a field of the transport as files write it. */
export function pathInFile(path: string): string {
  return path.replace(/^(stdio|http|custom)\./, "");
}
