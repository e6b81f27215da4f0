import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { isObject } from "../schema/json-object.ts";
import { BUILT_IN_GROUPS, BUILT_IN_NAMES } from "./built-ins.ts";
import { pin, serverSpelling } from "./server-spelling.ts";
import { itsOwn, type JsonSchema, type Spelling } from "./spelling.ts";

const text = { type: "string" };
const sourceName = { type: "string", pattern: "^[a-zA-Z0-9_.-]{1,64}$" };

/** Two ways to write one duration, of which a file uses one. */
export const waysOfDurations = [
  ["interval", "intervalMs"],
  ["timeout", "timeoutMs"],
] as const;

const worker: JsonSchema = {
  type: "object",
  properties: {
    name: { ...sourceName, description: "Name within the agent, the `server` of `@server/tool`." },
    file: { ...text, description: "The file of its functions; absent means the one with the source's name." },
    secrets: { type: "array", items: text, description: "Names of the secrets that its functions are given." },
    pin,
    config: { type: "object", description: "What its functions read as their configuration." },
  },
  required: ["name"],
  additionalProperties: false,
};

/** Agents in files: the contract's form, and two short ways to write sources, which `agentFromFile` reads. */
export const agentSpelling: Spelling = {
  "toolbus.agent.v1.Agent": {
    fields: {
      $schema: { schema: () => ({ ...text, description: "Where the schema of this file is." }) },
      mcp: {
        field: "sources",
        schema: () => ({
          type: "object",
          description: "MCP servers, a short way to write sources of the provider `mcp`.",
          properties: {
            servers: {
              type: "array",
              items: { $ref: "#/$defs/toolbus.mcp.v1.McpServer" },
              description: "The servers; each is a source of its name.",
            },
          },
          additionalProperties: false,
        }),
      },
      workers: {
        field: "sources",
        schema: () => ({
          type: "array",
          items: worker,
          description: "Python files and hosted modules, a short way to write sources of the provider `worker`.",
        }),
      },
      sources: { field: "sources", schema: itsOwn },
    },
  },
  "toolbus.agent.v1.Limits": {
    fields: {
      maxTokens: { field: "maxTokens", schema: (own) => ({ ...own, minimum: 1, pattern: "^0*[1-9][0-9]{0,17}$" }) },
      maxCost: {
        field: "maxCost",
        schema: (own) => ({
          ...own,
          type: "object",
          properties: { micros: { type: ["integer", "string"], minimum: 1, pattern: "[1-9]" } },
          required: ["micros"],
        }),
      },
    },
  },
  "toolbus.agent.v1.ToolUse": {
    fields: {
      allowed: {
        field: "allowed",
        schema: () => ({
          type: "array",
          items: { ...text, maxLength: 512 },
          maxItems: 1000,
          description:
            "Which of those in use may be called: references, aliases or patterns. Absent, an empty list and `*` allow all in use.",
        }),
        read: allowedFromFile,
      },
      builtins: {
        field: "builtins",
        schema: ({ description }) => ({
          type: "array",
          items: { enum: [...BUILT_IN_GROUPS.keys(), ...BUILT_IN_NAMES] },
          maxItems: 1000,
          ...(description !== undefined && { description }),
        }),
        read: (value) => ({ builtins: Array.isArray(value) ? { names: value } : value }),
      },
      pins: {
        field: "pins",
        schema: ({ description }) => ({
          type: "object",
          additionalProperties: { oneOf: [{ const: true }, { type: "string", pattern: "^(sha256:[0-9a-f]{64})?$" }] },
          maxProperties: 1000,
          ...(description !== undefined && { description }),
        }),
        read: pinsFromFile,
      },
    },
  },
  "toolbus.mcp.v1.HealthCheck": {
    fields: {
      interval: { field: "interval", schema: itsOwn },
      intervalMs: { field: "interval", schema: itsOwn },
      timeout: { field: "timeout", schema: itsOwn },
      timeoutMs: { field: "timeout", schema: itsOwn },
    },
    schema: { allOf: waysOfDurations.map((required) => ({ not: { required } })) },
  },
  "toolbus.mcp.v1.McpServer": serverSpelling,
};

/** `true` stands for what was seen first, or approved since. */
function pinsFromFile(value: JsonValue): JsonObject {
  if (!isObject(value)) return { pins: value };
  return { pins: Object.fromEntries(Object.entries(value).map(([name, pin]) => [name, pin === true ? "" : pin])) };
}

/** ORCH-2: in files an empty list allows what is in use; in the contract it allows nothing. */
function allowedFromFile(value: JsonValue): JsonObject {
  if (!Array.isArray(value)) return { allowed: value };
  return value.length === 0 ? {} : { allowed: { names: value } };
}
