// What Prometheus and Grafana are given: each expression is PromQL, and asks for what a gateway really exposes.

import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parser } from "@prometheus-io/lezer-promql";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { projectRoot } from "../../../architecture/source-files.ts";
import { openTestSuite } from "../../../harness/suite.ts";

const read = (path: string) => readFileSync(join(projectRoot, "deploy", path), "utf8");

const annotations = z.strictObject({ summary: z.string().min(1), description: z.string().min(20) });
const ruleSchema = z.union([
  z.strictObject({ record: z.string().regex(/^toolbus(:\w+){2}$/), expr: z.string() }),
  z.strictObject({
    alert: z.string().regex(/^Toolbus\w+$/),
    expr: z.string(),
    for: z.string().regex(/^\d+m$/),
    labels: z.strictObject({ severity: z.enum(["critical", "warning"]) }),
    annotations,
  }),
]);
const rulesSchema = z.strictObject({
  groups: z.array(z.strictObject({ name: z.string(), rules: z.array(ruleSchema) })).min(1),
});
const panelSchema = z.looseObject({
  id: z.number(),
  title: z.string().min(1),
  description: z.string().min(1),
  gridPos: z.strictObject({ x: z.number(), y: z.number(), w: z.number(), h: z.number() }),
  datasource: z.strictObject({ type: z.literal("prometheus"), uid: z.string().regex(/^\$\{datasource\}$/) }),
  targets: z.array(z.strictObject({ refId: z.string(), expr: z.string(), legendFormat: z.string() })).min(1),
});

const { rules } = rulesSchema.parse(parse(read("prometheus/toolbus.rules.yaml"))).groups[0]!;
const panels = z.array(panelSchema).parse(JSON.parse(read("grafana/toolbus.json")).panels);
const recorded = rules.flatMap((rule) => ("record" in rule ? [rule.record] : []));
const expressions = [
  ...rules.map((rule) => ["record" in rule ? rule.record : rule.alert, rule.expr] as const),
  ...panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [title, expr] as const)),
];

/** Grafana puts these in before it asks. */
const asAsked = (expression: string) => expression.replaceAll("$__rate_interval", "1m").replaceAll("$job", "toolbus");

interface Selector {
  readonly metric: string;
  readonly labels: { readonly name: string; readonly operator: string; readonly value: string }[];
}

/** Throws for what is no PromQL, with the place. */
function selectorsOf(expression: string): Selector[] {
  const asked = asAsked(expression);
  const selectors: Selector[] = [];
  parser.parse(asked).iterate({
    enter({ type, from, to }) {
      const text = asked.slice(from, to);
      if (type.isError) throw new SyntaxError(`no PromQL at ${from}: ${asked.slice(from)}`);
      if (type.name === "Identifier") selectors.push({ metric: text, labels: [] });
      const matcher = /^(\w+)(=~|!~|!=|=)"(.*)"$/.exec(text);
      if (type.name !== "UnquotedLabelMatcher" || matcher === null) return;
      const [, name = "", operator = "", value = ""] = matcher;
      selectors.at(-1)?.labels.push({ name, operator, value });
    },
  });
  return selectors;
}

const methods = globSync("proto/toolbus/**/*.proto", { cwd: projectRoot }).flatMap((path) =>
  [...readFileSync(join(projectRoot, path), "utf8").matchAll(/^ {2}rpc (\w+)\(/gm)].map(([, name = ""]) => name),
);

const stack = new AsyncDisposableStack();
const exposed = new Map<string, Set<string>>();
let text = "";

beforeAll(async () => {
  const suite = stack.use(await openTestSuite({ services: ["gateway"] })); // nobody serves what it is asked
  await expect(suite.connection.client(AgentService).listAgents({})).rejects.toThrow();
  const ask = async (path: string, init: RequestInit = {}) => {
    const revision = { "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list" };
    const headers = { authorization: `Bearer ${suite.apiKey}`, "content-type": "application/json", ...revision };
    return (await fetch(suite.url + path, { headers, ...init })).text();
  };
  const client = { protocolVersion: "2026-07-28", clientInfo: { name: "test", version: "1" }, clientCapabilities: {} };
  const _meta = Object.fromEntries(
    Object.entries(client).map(([key, value]) => [`io.modelcontextprotocol/${key}`, value]),
  );
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: { _meta } });
  expect(await ask("/mcp/nobody", { method: "POST", body })).toContain("nobody serves");
  text = await ask("/metrics");
  for (const [, metric = "", labels = ""] of text.matchAll(/^(\w+)\{(.*)\} \S+/gm)) {
    const known = exposed.get(metric) ?? new Set<string>();
    for (const [, name = ""] of labels.matchAll(/(\w+)="/g)) known.add(name);
    exposed.set(metric, known);
  }
});
afterAll(() => stack.disposeAsync());

describe("what Prometheus and Grafana are asked", () => {
  it.each(expressions)(
    "%s: %s names metrics and labels that a gateway exposes, and methods that there are",
    (_, expression) => {
      const selectors = selectorsOf(expression);
      expect(selectors.length).toBeGreaterThan(0);
      for (const { metric, labels } of selectors) {
        if (recorded.includes(metric)) continue;
        if (metric !== "up") expect([...exposed.keys()]).toContain(metric);
        for (const { name, operator, value } of labels) {
          if (name !== "job" && metric !== "up") expect([...(exposed.get(metric) ?? [])]).toContain(name);
          if (name !== "method") continue;
          for (const word of operator.includes("~") ? value.split("|") : [value])
            expect(
              methods.some((method) => new RegExp(`^(?:${word})$`).test(method)),
              word,
            ).toBe(true);
        }
      }
    },
  );

  it("a fault of the suite that an MCP client is told counts as one, though its status is 200", () => {
    expect(text).toContain('http_route="/mcp/{agent}",http_response_status_code="200",error_type="unavailable"');
  });

  it("is told where it is wrong", () => {
    expect(() => selectorsOf("sum(rate(x{a=}[5m])")).toThrow(/no PromQL/);
    expect(selectorsOf('rate(x{a="b",c=~"d|e"}[5m])')).toEqual([
      {
        metric: "x",
        labels: [
          { name: "a", operator: "=", value: "b" },
          { name: "c", operator: "=~", value: "d|e" },
        ],
      },
    ]);
  });

  it("a dashboard's panels do not cover each other, and each has an id of its own", () => {
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, index) => `${x + (index % w)},${y + Math.floor(index / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    expect(Math.max(...panels.map(({ gridPos: { x, w } }) => x + w))).toBe(24);
  });
});
