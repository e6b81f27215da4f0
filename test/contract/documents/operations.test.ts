// docs/operations is what an operator believes. What it says of child processes, stores and messages is compared with the code.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";
import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import {
  BUCKETS,
  type Limits,
  largestMessageBytes,
  OBJECT_STORES,
  STREAMS,
} from "#runtime/bus/declarations/declarations.ts";
import { projectRoot, sourceFilesBelow } from "../../architecture/source-files.ts";

const ours = /^(TOOLBUS|NATS|OPENAI|OTEL)_/;

describe("child processes", () => {
  it("an MCP server gets the variables that its section names", async () => {
    const named = namesBelow("What an MCP server inherits");
    const config = (await configOf("mcp-bridge", named)) as { environment: Record<string, string> };
    expect(Object.keys(config.environment).sort()).toEqual(named);
    const code = readFileSync(join(projectRoot, "services/mcp-bridge/config.ts"), "utf8");
    const inCode = [...code.matchAll(/"([A-Z][A-Z_]+)"/g)].flatMap(([, name = ""]) => (ours.test(name) ? [] : [name]));
    expect(named).toEqual(inCode.sort());
  });

  it("a worker gets the variables that its section names, and uv more than that", async () => {
    type Environments = { workerEnvironment: object; installEnvironment: object };
    const named = namesBelow("What a Python worker and a hosted module inherit");
    const config = (await configOf("worker-pool", named)) as Environments;
    const toInstall = ["NETRC", "SSH_AUTH_SOCK", "GIT_SSH_COMMAND"];
    expect(named).toEqual(expect.arrayContaining(toInstall));
    expect(Object.keys(config.installEnvironment).sort()).toEqual(named);
    expect(Object.keys(config.workerEnvironment).sort()).toEqual(named.filter((name) => !toInstall.includes(name)));
  });
});

const whenFull = ({ discard = "new" }: { discard?: "new" | "old" }) =>
  discard === "new" ? "refuses" : "forgets the oldest";

it("every store is in the table, with its limits", () => {
  const streams = Object.entries(STREAMS).map(([name, store]) => [
    name,
    ...limitsOf(store),
    `${store.maxMessagesPerSubject ?? ""}`,
    whenFull(store),
  ]);
  const buckets = Object.entries(BUCKETS).map(([name, store]) => [
    name,
    ...limitsOf(store),
    `${store.history ?? 1}`,
    whenFull(store),
  ]);
  const objects = Object.entries(OBJECT_STORES).map(([name, store]) => [name, ...limitsOf(store), "", "refuses"]);
  const declared = [...streams, ...buckets, ...objects];
  const [table = ""] = pageOf("stores").split("\n## ");
  expect(rowsOf(table).map(([name = "", ...cells]) => [bare(name), ...cells])).toEqual(declared);
  const all = [STREAMS, BUCKETS, OBJECT_STORES].flatMap((stores) => Object.values(stores) as { maxBytes: number }[]);
  const total = all.reduce((sum, store) => sum + store.maxBytes, 0) / 2 ** 30;
  expect(table).toContain(`${(Math.ceil(total * 10) / 10).toFixed(1)} GiB`);
});

it("each message stands in the code", () => {
  const folders = ["runtime", "services", "cli"].flatMap((folder) => sourceFilesBelow(folder));
  const code = folders.filter((file) => !file.isTest).map((file) => file.text);
  code.push(readFileSync(join(projectRoot, "services/worker-pool/inspector/metadata.py"), "utf8"));
  const rows = pageOf("messages").split("\n## ").flatMap(rowsOf);
  const quoted = rows.flatMap(([cell = ""]) => [...cell.matchAll(/`([^`]+)`/g)].map((match) => match[1]));
  const parts = quoted.flatMap((words) => (words ?? "").split("…")).map((part) => part.trim());
  const missing = parts.filter((part) => part.length > 1 && !code.some((one) => one.includes(part)));
  expect(parts.length).toBeGreaterThan(70);
  expect(missing).toEqual([]);
});

it("every kind of audit events is named", () => {
  const kinds = Object.keys(AuditKind).filter((name) => name !== "UNSPECIFIED");
  const [, said = ""] = /\nThe kinds are ([^;]+);/.exec(pageOf("observe")) ?? [];
  const named = [...said.matchAll(/`(\w+)`/g)].map(([, name = ""]) => name.toUpperCase());
  expect(named.sort()).toEqual(kinds.sort());
});

/** What a service reads when everything is set that a section of the document names. */
async function configOf(service: string, names: string[]): Promise<unknown> {
  const url = pathToFileURL(join(projectRoot, "services", service, "config.ts")).href;
  const { readConfig } = (await import(url)) as { readConfig: (env: NodeJS.ProcessEnv) => unknown };
  return readConfig(Object.fromEntries(names.map((name) => [name, "x"])));
}

function namesBelow(heading: string): string[] {
  const [, after = ""] = pageOf("secure").split(`\n### ${heading}\n`);
  const section = after.split(/\n##/)[0] ?? "";
  return [...section.matchAll(/`([A-Z][A-Z_]*[A-Z])`/g)].map((match) => match[1] ?? "").sort();
}

function pageOf(name: string): string {
  return readFileSync(join(projectRoot, "docs/operations", `${name}.md`), "utf8");
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

function bare(cell: string): string {
  return cell.replaceAll("`", "");
}

function limitsOf({ maxBytes, maxMessageBytes = largestMessageBytes, maxAgeMs }: Limits): string[] {
  return [sizeOf(maxBytes), sizeOf(maxMessageBytes), ageOf(maxAgeMs)];
}

function ageOf(ms: number | undefined): string {
  if (ms === undefined) return "";
  return ms === 3_600_000 ? "1 hour" : `${ms / 86_400_000} days`.replace(/^1 days$/, "1 day");
}

function sizeOf(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB"];
  const power = Math.min(3, Math.floor(Math.log2(bytes) / 10));
  return `${bytes / 1024 ** power} ${units[power]}`;
}
