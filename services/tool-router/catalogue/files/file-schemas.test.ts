import { readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, test } from "vitest";
import agentSchema from "#gen/jsonschema/agent.schema.json" with { type: "json" };
import toolSchema from "#gen/jsonschema/tool.schema.json" with { type: "json" };
import { parseAgentFile } from "./agent-file.ts";
import { parseToolFile } from "./tool-file.ts";

/** As an editor reads them: the published schema, and nothing of ours. */
const ajv = new Ajv2020({ allErrors: true });
const forms = {
  agents: { isValid: ajv.compile(agentSchema), parse: parseAgentFile },
  tools: { isValid: ajv.compile(toolSchema), parse: parseToolFile },
};

const examples = new URL("../../../../examples/", import.meta.url).pathname;
const files = readdirSync(examples, { recursive: true, encoding: "utf8" }).flatMap((path) => {
  const folder = basename(dirname(path));
  const isFile = path.endsWith(".json") && !path.includes("node_modules");
  return isFile && (folder === "agents" || folder === "tools") ? [[path, folder] as const] : [];
});

describe("the published schemas of files", () => {
  test("TOOL-1 TOOL-14 there are examples of both kinds", () => {
    expect(new Set(files.map(([, folder]) => folder))).toEqual(new Set(["agents", "tools"]));
  });

  test.each(files)("TOOL-1 the example %s fits its schema and is read", (path, folder) => {
    const text = readFileSync(join(examples, path), "utf8");
    expect(forms[folder].isValid(JSON.parse(text))).toBe(true);
    expect(forms[folder].parse(text).kind).toBe("parsed");
  });

  const agent = (more: object) => ["agents", { name: "a", ...more }] as const;
  const priced = (price: object) => agent({ model: { provider: "scripted", model: "m", price } });
  const tool = (more: object) => ["tools", { name: "t", executionType: "external", ...more }] as const;
  const server = (more: object) => agent({ mcp: { servers: [{ name: "s", command: "x", ...more }] } });

  test.each([
    ["agents", {}],
    agent({ name: "no spaces" }),
    agent({ nmae: "a" }),
    agent({ description: "x".repeat(65_537) }),
    agent({ model: { provider: "scripted" } }),
    agent({ model: { provider: "no spaces", model: "m" } }),
    agent({ limits: { maxTurns: -1 } }),
    agent({ limits: { maxTurns: 100_001 } }),
    agent({ limits: { maxTurns: "10" } }),
    agent({ limits: { maxCost: 2.5 } }),
    agent({ limits: { maxCost: { currencyCode: "USD", micros: -1 } } }),
    agent({ limits: { maxCost: { currencyCode: "USD", micros: 0.5 } } }),
    agent({ limits: { maxCost: { currencyCode: "USD", micros: "2.5" } } }),
    agent({ limits: { maxCost: { currencyCode: "dollars", micros: 1 } } }),
    agent({ limits: { maxCost: { currencyCode: "USD", micros: 2 ** 53 } } }),
    agent({ limits: { maxTokens: "99999999999999999999" } }),
    agent({ limits: { maxTokens: 0 } }),
    agent({ limits: { maxTokens: "0" } }),
    agent({ limits: { maxTurns: 0 } }),
    priced({ currencyCode: "USD", inputMicrosPerMillionTokens: 1 }),
    priced({ currencyCode: "USD" }),
    agent({ limits: { maxCost: { micros: 1 } } }),
    agent({ limits: { maxCost: { currencyCode: "USD" } } }),
    agent({ limits: { maxCost: { currencyCode: "USD", micros: 0 } } }),
    agent({ limits: { maxCost: { currencyCode: "USD", micros: "00" } } }),
    priced({ currencyCode: "usd" }),
    priced({ inputMicrosPerMillionTokens: 1 }),
    priced({ currencyCode: "USD", outputMicrosPerMillionTokens: -1 }),
    priced({ currencyCode: "USD", inputPerMillion: 3 }),
    agent({ tools: { use: "all" } }),
    agent({ tools: { use: [1] } }),
    agent({ wakeOnInbox: "yes" }),
    agent({ subAgents: [{}] }),
    agent({ sources: [{ name: "s" }] }),
    agent({ workers: [{ file: "x.py" }] }),
    agent({ mcp: { server: [] } }),
    server({ name: undefined }),
    server({ url: "http://127.0.0.1:1" }),
    server({ command: undefined }),
    server({ share: "everybody" }),
    server({ args: "x" }),
    ["tools", { name: "t" }],
    ["tools", { executionType: "external" }],
    tool({ name: "x".repeat(65) }),
    tool({ executionType: "magic" }),
    tool({ executionType: "EXECUTION_TYPE_EXTERNAL" }),
    tool({ executionType: "custom" }),
    tool({ executionType: ":" }),
    tool({ inputSchema: true }),
    tool({ inputSchemaJson: "{}" }),
    tool({ outputSchema: "{}" }),
    tool({ timeout: 0 }),
    tool({ timeout: "soon" }),
    tool({ expires: 1.5 }),
    tool({ effect: "sometimes" }),
    tool({ effect: "unspecified" }),
    tool({ isAsync: 1 }),
    tool({ customType: "a:b" }),
    tool({ customType: { provider: "a", toolType: "b" } }),
    tool({ annotations: "none" }),
    tool({ execution: { method: "GET" } }),
    tool({ execution: { url: "file:///etc/passwd" } }),
    tool({ execution: { url: "https://example.org", method: "get" } }),
    tool({ execution: { url: "https://example.org", headers: { a: 1 } } }),
    tool({ builtinPolicy: { name: "fs_remove" } }),
    tool({ builtinPolicy: { timeout: -1 } }),
  ] as const)("TOOL-1 in %s, %j is refused by the schema as by the reader", (folder, file) => {
    const text = JSON.stringify(file);
    expect(forms[folder].isValid(JSON.parse(text))).toBe(false);
    expect(forms[folder].parse(text)).toMatchObject({
      kind: "faulty",
      faults: expect.arrayContaining([expect.any(String)]),
    });
  });

  test.each([
    agent({ $schema: "../gen/jsonschema/agent.schema.json", limits: { maxTokens: 9, modelRetries: 0 } }),
    agent({ limits: { maxCost: { currencyCode: "USD", micros: 500_000 }, maxTokens: "1000000" } }),
    agent({ limits: { maxCost: { currencyCode: "EUR", micros: "999999999999999999" } } }),
    priced({ currencyCode: "USD", inputMicrosPerMillionTokens: 3_000_000, outputMicrosPerMillionTokens: "15000000" }),
    server({ env: { A: "b" }, share: "global" }),
    tool({ $schema: "x", executionType: "acme:thing", outputSchema: false, timeout: 1, effect: "pure" }),
    tool({ builtinPolicy: { allowedPaths: ["/data"], timeout: 100 } }),
    tool({ kind: "external" }),
  ])("TOOL-1 in %s, %j is taken by the schema as by the reader", (folder, file) => {
    const text = JSON.stringify(file);
    expect(forms[folder].isValid(JSON.parse(text))).toBe(true);
    expect(forms[folder].parse(text).kind).toBe("parsed");
  });
});
