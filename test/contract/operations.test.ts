// docs/operations.md is what an operator believes. What it says of variables, stores and messages is compared with the code.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";
import { BUCKETS, OBJECT_STORES, STREAMS } from "#runtime/bus/declarations.ts";
import { readServiceConfig } from "#runtime/config/service-config.ts";
import { listRooms } from "../../cli/suite/rooms.ts";
import { projectRoot, sourceFilesBelow } from "../architecture/source-files.ts";

const text = readFileSync(join(projectRoot, "docs/operations.md"), "utf8");
const rooms = listRooms();
const ours = /^(TOOLBUS|NATS|OPENAI|OTEL)_/;

type ReadConfig = (env: NodeJS.ProcessEnv) => unknown;

describe("every service", () => {
  it("is in the document, and has its variables there", () => {
    expect(rooms.filter((room) => sectionOf(room) === "")).toEqual([]);
    expect(namesOf("Every service").length).toBeGreaterThan(5);
  });

  it("reads the variables that all are said to read", () => {
    expect(namesOf("Every service").sort()).toEqual([...readBy(readServiceConfig)].sort());
  });
});

describe.each(rooms)("%s", (room) => {
  it("reads exactly the variables of its table, besides those of every service", async () => {
    const readConfig = await readConfigOf(room);
    const own = [...readBy(readConfig)].filter((name) => !namesOf("Every service").includes(name));
    const withSecrets = readsSecrets(readConfig) ? [...own, "TOOLBUS_SECRET_<NAME>"] : own;
    expect(namesOf(room).sort()).toEqual(withSecrets.sort());
  });

  it("has the defaults of its table", async () => {
    const readConfig = await readConfigOf(room);
    for (const [name, fallback] of [...defaultsOf(room), ...defaultsOf("Every service")]) {
      expect({ name, config: readConfig({ [name]: fallback }) }).toEqual({ name, config: readConfig({}) });
    }
  });
});

describe("child processes", () => {
  it("an MCP server gets the variables that its section names", async () => {
    const config = (await configOfNamed("mcp-bridge")) as { environment: Record<string, string> };
    expect(Object.keys(config.environment).sort()).toEqual(wordsOf("mcp-bridge").sort());
    const code = readFileSync(join(projectRoot, "services/mcp-bridge/config.ts"), "utf8");
    const inCode = [...code.matchAll(/"([A-Z][A-Z_]+)"/g)].flatMap(([, name = ""]) => (ours.test(name) ? [] : [name]));
    expect(wordsOf("mcp-bridge").sort()).toEqual(inCode.sort());
  });

  it("a worker gets the variables that its section names, and uv more than that", async () => {
    type Environments = { workerEnvironment: object; installEnvironment: object };
    const config = (await configOfNamed("worker-pool")) as Environments;
    const toInstall = ["NETRC", "SSH_AUTH_SOCK", "GIT_SSH_COMMAND"];
    const named = wordsOf("worker-pool");
    expect(named).toEqual(expect.arrayContaining(toInstall));
    expect(Object.keys(config.installEnvironment).sort()).toEqual(named.sort());
    expect(Object.keys(config.workerEnvironment).sort()).toEqual(named.filter((name) => !toInstall.includes(name)));
  });
});

it("the variables of the command are those that it reads", () => {
  const code = sourceFilesBelow("cli")
    .map((file) => file.text)
    .join("\n");
  const read = new Set(code.match(/\b(?:(?:TOOLBUS|NATS|OPENAI|OTEL)_[A-Z_]+|NODE_COMPILE_CACHE)\b/g));
  expect(namesOf("The command").filter((name) => !read.has(name))).toEqual([]);
  const known = ["The command", "Every service", ...rooms].flatMap(namesOf);
  expect([...read].filter((name) => !known.includes(name))).toEqual([]);
});

it("every store is in the table, with its limits", () => {
  const streams = Object.entries(STREAMS).map(([name, store]) => [
    name,
    ...limitsOf(store),
    `${store.maxMessagesPerSubject ?? ""}`,
    store.discard === "new" ? "refuses" : "forgets the oldest",
  ]);
  const buckets = Object.entries(BUCKETS).map(([name, store]) => [
    name,
    ...limitsOf(store),
    `${store.history}`,
    "refuses",
  ]);
  const objects = Object.entries(OBJECT_STORES).map(([name, store]) => [name, ...limitsOf(store), "", "refuses"]);
  const declared = [...streams, ...buckets, ...objects];
  expect(rowsBelow("## Stores").map(([name = "", ...cells]) => [bare(name), ...cells])).toEqual(declared);
  const all = [STREAMS, BUCKETS, OBJECT_STORES].flatMap((stores) => Object.values(stores) as { maxBytes: number }[]);
  const total = all.reduce((sum, store) => sum + store.maxBytes, 0) / 2 ** 30;
  expect(text).toContain(`${(Math.ceil(total * 10) / 10).toFixed(1)} GiB`);
});

it("each text of a fault stands in the code", () => {
  const folders = ["runtime", "services", "cli"].flatMap((folder) => sourceFilesBelow(folder));
  const code = folders.filter((file) => !file.isTest).map((file) => file.text);
  code.push(readFileSync(join(projectRoot, "services/worker-pool/inspector/metadata.py"), "utf8"));
  const quoted = rowsBelow("## Faults").flatMap(([cell = ""]) =>
    [...cell.matchAll(/`([^`]+)`/g)].map((match) => match[1]),
  );
  const parts = quoted.flatMap((words) => (words ?? "").split("…")).map((part) => part.trim());
  const missing = parts.filter((part) => part.length > 1 && !code.some((one) => one.includes(part)));
  expect(parts.length).toBeGreaterThan(40);
  expect(missing).toEqual([]);
});

async function readConfigOf(room: string): Promise<ReadConfig> {
  const url = pathToFileURL(join(projectRoot, "services", room, "config.ts")).href;
  return ((await import(url)) as { readConfig: ReadConfig }).readConfig;
}

/** The variables of ours that a config asks for. */
function readBy(readConfig: ReadConfig): Set<string> {
  const read = new Set<string>();
  const env = new Proxy<NodeJS.ProcessEnv>({}, { get: (_, name) => void read.add(String(name)) });
  readConfig(env);
  return new Set([...read].filter((name) => ours.test(name)));
}

function readsSecrets(readConfig: ReadConfig): boolean {
  const { secrets } = readConfig({ TOOLBUS_SECRET_PROBE: "x" }) as { secrets?: ReadonlyMap<string, string> };
  return secrets?.get("PROBE") === "x";
}

/** What a room reads when everything is set that its section names outside of tables. */
async function configOfNamed(room: string): Promise<unknown> {
  const readConfig = await readConfigOf(room);
  return readConfig(Object.fromEntries(wordsOf(room).map((name) => [name, "x"])));
}

function wordsOf(room: string): string[] {
  const prose = sectionOf(room)
    .split("\n")
    .filter((line) => !line.startsWith("|"));
  return [...prose.join("\n").matchAll(/`([A-Z][A-Z_]*[A-Z])`/g)].map((match) => match[1] ?? "").sort();
}

function sectionOf(heading: string): string {
  const [, after = ""] = text.split(`\n### ${heading}\n`);
  return after.split(/\n##/)[0] ?? "";
}

function rowsBelow(heading: string): string[][] {
  const [, after = ""] = text.split(`\n${heading}\n`);
  return rowsOf(after.split("\n## ")[0] ?? "");
}

function rowsOf(section: string): string[][] {
  const lines = section.split("\n").filter((line) => line.startsWith("|"));
  return lines.slice(2).map((line) =>
    line
      .slice(1, -1)
      .split("|")
      .map((cell) => cell.trim()),
  );
}

function namesOf(heading: string): string[] {
  return rowsOf(sectionOf(heading)).map(([name = ""]) => bare(name));
}

/** Those that are written as values; others are words. */
function defaultsOf(heading: string): [name: string, value: string][] {
  const rows = rowsOf(sectionOf(heading)).filter(([, fallback = ""]) => /^`[^`]+`$/.test(fallback));
  return rows.map(([name = "", fallback = ""]) => [bare(name), bare(fallback)]);
}

function bare(cell: string): string {
  return cell.replaceAll("`", "");
}

function limitsOf(store: { maxBytes: number; maxMessageBytes: number; maxAgeMs?: number }): string[] {
  return [sizeOf(store.maxBytes), sizeOf(store.maxMessageBytes), ageOf(store.maxAgeMs)];
}

function ageOf(ms: number | undefined): string {
  if (ms === undefined) return "";
  return ms === 3_600_000 ? "1 hour" : `${ms / 86_400_000} days`;
}

function sizeOf(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB"];
  const power = Math.min(3, Math.floor(Math.log2(bytes) / 10));
  return `${bytes / 1024 ** power} ${units[power]}`;
}
