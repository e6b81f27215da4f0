// One run through all of it: an agent uses an MCP server, a Python function with a dependency, a URL, a tool of its
// caller, and a person's answer. A fresh random value goes through each and is looked for in each recorded result.

import { randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync } from "node:fs";
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { create } from "@bufbuild/protobuf";
import { Command, Option } from "commander";
import { Role, type Run, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { InputItemSchema, RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { ToolCatalogService } from "#gen/toolbus/tool/v1/tool_catalog_service_pb.ts";
import { Effect, ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { type Connection, openConnection } from "../../cli/connection.ts";
import { colors, printLine, printNote } from "../../cli/printing/print.ts";
import { createRunPrinter } from "../../cli/printing/run-printer.ts";
import { listServices } from "../../cli/suite/service-names.ts";
import { openSuite } from "../../cli/suite/suite.ts";
import { followRun } from "../../cli/watching/run-follower.ts";
import { attachCaller } from "./caller.ts";
import { openOrderServer } from "./order-server.ts";
import { playPerson } from "./person.ts";

/** The five kinds: who executes, and the tool's name as the model calls it. */
const kinds = {
  mcp: { title: "an MCP server", tool: "everything__echo" },
  worker: { title: "a Python function", tool: "qr" },
  url: { title: "a URL", tool: "lookup_order" },
  caller: { title: "the caller", tool: "demo_notify" },
  person: { title: "a person", tool: "confirm" },
} as const;
type Kind = keyof typeof kinds;

const serviceOfKind: Partial<Record<Kind, string>> = { mcp: "mcp-bridge", worker: "worker-pool" };

const { without = [], console: isInConsole } = new Command("demo")
  .description("Run an agent through tools of all kinds, and check what each answered")
  .addOption(
    new Option("--without <kind...>", "take these providers away, to see them missed").choices(Object.keys(kinds)),
  )
  .option("--console", "be the person yourself: watch the run in the console, and answer there")
  .parse()
  .opts<{ without?: Kind[]; console?: true }>();

process.exitCode = (await play()) ? 0 : 1;

async function play(): Promise<boolean> {
  const startedAt = performance.now();
  await using stack = new AsyncDisposableStack();
  const leaving = new AbortController();
  const orders = stack.use(await openOrderServer());
  if (without.includes("url")) await orders.close();
  mkdirSync(".toolbus", { recursive: true });
  const directory = mkdtempSync(join(".toolbus", "demo-"));
  let isWhole = false;
  stack.defer(async () => {
    if (isWhole) await rm(directory, { recursive: true });
    else printNote(`the services' logs are in ${directory}/logs`);
  });
  const here = (name: string) => fileURLToPath(new URL(name, import.meta.url));
  const suite = stack.use(
    await openSuite({
      directory,
      port: 0,
      services: listServices().filter((service) => !without.some((kind) => serviceOfKind[kind] === service)),
      env: {
        TOOLBUS_AGENTS: here("agents"),
        TOOLBUS_TOOLS: isInConsole ? await copyWithoutTimeouts(here("tools"), directory) : here("tools"),
        TOOLBUS_SCRIPTS: here("models"),
        TOOLBUS_GATEWAY_ALLOW: orders.address,
      },
      onProgress: printNote,
      onEvent: (event) => event.kind === "ready" && printNote(`  ${event.service} ready (${event.durationMs} ms)`),
    }),
  );
  stack.defer(() => leaving.abort());
  printNote(`the suite is up at ${suite.url} after ${secondsSince(startedAt)} s\n`);

  const connection = openConnection(suite);
  const value = `order-${randomUUID()}`;
  const onRun = (runId: string) => {
    if (!isInConsole) return;
    const keyPath = suite.key === undefined ? "" : `; its key is in ${suite.key.path}`;
    printLine(`answer at ${suite.url}/#/runs/${runId}${keyPath}`);
  };
  const run = await runThrough(connection, { value, ordersUrl: orders.url, onRun, signal: leaving.signal });
  isWhole = report(run, value);
  printLine(
    `\n${isWhole ? colors.green("all five answered") : colors.red("the demo failed")} in ${secondsSince(startedAt)} s`,
  );
  return isWhole;
}

interface Scene {
  value: string;
  ordersUrl: string;
  onRun: (runId: string) => void;
  signal: AbortSignal;
}

async function runThrough(
  connection: Connection,
  { value, ordersUrl, onRun, signal }: Scene,
): Promise<Run | undefined> {
  await applyOrderTool(connection, ordersUrl);
  await connection.client(SpaceService).createSpace({ spaceId: "demo", title: "Demo" });
  const { session } = await connection.client(SessionService).createSession({ agent: "demo" });
  const sessionId = session?.id ?? "";
  if (!without.includes("caller")) await attachCaller(connection, sessionId, signal);
  const isPlayed = !without.includes("person") && !isInConsole;
  if (isPlayed) void playPerson(connection, "demo", signal).catch(reportUnlessLeaving(signal));

  const runs = connection.client(RunService);
  const input = [
    create(InputItemSchema, {
      item: {
        case: "message",
        value: { role: Role.USER, content: [{ part: { case: "text" as const, value: value } }] },
      },
    }),
  ];
  const { run } = await runs.createRun({ sessionId, input });
  const runId = run?.id ?? "";
  printLine(`${colors.bold("input")} ${value}`);
  onRun(runId);
  await followRun(connection, runId, { printer: createRunPrinter((text) => void process.stdout.write(text)), signal });
  return (await runs.getRun({ runId })).run;
}

/** The tools as they are for one who reads a page, which takes longer than the demo waits for its own person. */
async function copyWithoutTimeouts(from: string, directory: string): Promise<string> {
  const folder = join(directory, "tools");
  mkdirSync(folder);
  for (const name of await readdir(from)) {
    const { timeout: _, ...tool } = JSON.parse(await readFile(join(from, name), "utf8"));
    await writeFile(join(folder, name), JSON.stringify(tool));
  }
  return folder;
}

async function applyOrderTool(connection: Connection, url: string): Promise<void> {
  const schema = { type: "object", properties: { id: { type: "string" } }, required: ["id"] };
  await connection.client(ToolCatalogService).applyCatalogTool({
    tool: {
      name: "lookup_order",
      description: "Tell where an order is",
      inputSchemaJson: JSON.stringify(schema),
      executionType: ExecutionType.GATEWAY,
      effect: Effect.PURE,
      visible: false,
      execution: { url, method: "GET" },
    },
  });
}

/** Says of each kind whether its recorded result holds the value. */
function report(run: Run | undefined, value: string): boolean {
  const items = run?.items.map(({ item }) => item) ?? [];
  printLine();
  const answered = Object.values(kinds).map(({ title, tool }) => {
    const call = items.find((item) => item.case === "functionCall" && item.value.name === tool);
    const callId = call?.case === "functionCall" ? call.value.callId : undefined;
    const output = items.find((item) => item.case === "functionCallOutput" && item.value.callId === callId);
    const result = output?.case === "functionCallOutput" ? output.value.result : undefined;
    const isGood = result !== undefined && !result.isError && result.outputJson.includes(value);
    const finding = isGood ? "gave the value back" : `did not: ${result?.outputJson ?? "the call has no result"}`;
    printLine(`${isGood ? colors.green("✓") : colors.red("✗")} ${title} (${tool}) ${finding}`);
    return isGood;
  });
  const isComplete = run?.state === RunState.COMPLETED && run.outputText.includes(value);
  if (!isComplete) printLine(colors.red(`✗ the run: ${run?.endReason} ${run?.error}`));
  return isComplete && answered.every(Boolean);
}

function reportUnlessLeaving(signal: AbortSignal) {
  return (error: unknown) => {
    if (!signal.aborted) printNote(`the person left: ${error}`);
  };
}

function secondsSince(startedAt: number): string {
  return ((performance.now() - startedAt) / 1_000).toFixed(1);
}
