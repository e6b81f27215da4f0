// The units of systemd, read. That systemd knows what stands in them is a check (`npm run check -- systemd`).

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { listServices } from "../../../../cli/suite/service-names.ts";
import { projectRoot } from "../../../architecture/source-files.ts";
import { isDocumented } from "../../../harness/cluster/settings.ts";

const folder = join(projectRoot, "deploy/systemd");
const units = readdirSync(folder).map((name): [string, Unit] => [name, readUnit(name)]);
const [, single] = units.find(([name]) => name === "toolbus.service") as [string, Unit];
const [, many] = units.find(([name]) => name === "toolbus@.service") as [string, Unit];
const programs = "/opt/toolbus/node_modules/.bin"; // of `npm install --prefix /opt/toolbus`

it("starts the suite by one unit, and each of its services by the other", () => {
  expect(units.map(([name]) => name)).toEqual(["toolbus.service", "toolbus@.service"]);
  expect(single.values("ExecStart")).toEqual([`${programs}/toolbus up`]);
  expect(many.values("ExecStart")).toEqual([`${programs}/toolbus serve %i`]);
  const named = many.text.split("[Unit]")[0]?.match(/(?<=toolbus@)[a-z-]+(?=[,.])/g);
  expect(new Set(named)).toEqual(new Set(listServices()));
  expect(Object.keys(JSON.parse(readFileSync(join(projectRoot, "package.json"), "utf8")).bin)).toEqual(["toolbus"]);
});

it.each(units)("%s sets what the settings know, and no secret", (_name, unit) => {
  const ofThePlatform = ["PATH", "HOME", "XDG_CACHE_HOME", "MALLOC_ARENA_MAX"];
  const names = Object.keys(environmentOf(unit)).filter((name) => !ofThePlatform.includes(name));
  expect(names).toHaveLength(1);
  expect(names.filter((name) => !isDocumented(name))).toEqual([]);
  expect(environmentOf(unit).PATH?.split(":")[0]).toBe(programs); // the Node that came with it
});

it("SEC-1 gives each service its own key and the list of those that it trusts, where it looks for them", () => {
  expect(many.values("LoadCredential")).toEqual([
    "%i.nk:/etc/toolbus/bus/%i.nk",
    "trust.json:/etc/toolbus/bus/trust.json",
  ]);
  expect(environmentOf(many).TOOLBUS_BUS_CREDENTIALS).toBe("%d"); // where systemd puts them
});

it.each(units)("%s is stopped by one signal to one process, and has the time to finish", (_name, unit) => {
  expect(unit.values("KillMode")).toEqual(["mixed"]);
  expect(Number.parseInt(unit.values("TimeoutStopSec")[0] ?? "", 10)).toBeGreaterThan(30);
});

it.each(units)("%s has a user of its own, and writes only what is its own", (_name, unit) => {
  for (const name of ["DynamicUser", "NoNewPrivileges", "ProtectHome", "PrivateTmp", "PrivateDevices"])
    expect([name, unit.values(name)]).toEqual([name, ["yes"]]);
  expect(unit.values("ProtectSystem")).toEqual(["strict"]);
  expect(unit.values("CapabilityBoundingSet")).toEqual([""]);
  const written = [...unit.values("StateDirectory"), ...unit.values("CacheDirectory")];
  const roots: Record<string, string> = { "%S": "StateDirectory", "%C": "CacheDirectory" };
  for (const place of Object.values(environmentOf(unit)).filter((value) => /^%[SC]/.test(value))) {
    const [root = "", name = ""] = place.split("/");
    expect(unit.values(roots[root] ?? "")).toContain(name);
  }
  expect(written.length).toBeGreaterThan(0);
});

it.each(units)("SEC-3 %s lets its tools be confined: bwrap makes namespaces, and mounts a /proc", (_name, unit) => {
  const inTheWay = ["RestrictNamespaces", "ProtectKernelTunables", "ProtectKernelLogs", "ProtectProc", "ProcSubset"];
  expect(inTheWay.filter((name) => unit.values(name).length > 0)).toEqual([]);
  expect(unit.values("SystemCallFilter")).toEqual(["@system-service @mount"]);
});

interface Unit {
  readonly text: string;
  values(name: string): string[];
}

function readUnit(name: string): Unit {
  const text = readFileSync(join(folder, name), "utf8");
  const lines = text.split("\n").filter((line) => /^[A-Z]\w*=/.test(line));
  const pairs = lines.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)] as const);
  return { text, values: (wanted) => pairs.flatMap(([key, value]) => (key === wanted ? [value] : [])) };
}

function environmentOf(unit: Unit): Record<string, string> {
  const words = unit.values("Environment").flatMap((line) => line.split(" "));
  return Object.fromEntries(words.map((word) => word.split("=") as [string, string]));
}
