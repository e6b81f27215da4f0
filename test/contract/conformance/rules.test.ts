// Every rule of docs/connect-over-nats/README.md has a case, and what the page says of the suite is so.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { internalServices, processOf, publicServices } from "../../../services/processes.ts";
import { readCases } from "./case-file.ts";

const page = readFileSync(fileURLToPath(new URL("../../../docs/connect-over-nats/README.md", import.meta.url)), "utf8");
const rules = [...page.matchAll(/^- \*\*([A-Z]+-\d+)\*\* /gm)].map(([, rule = ""]) => rule);
const cases = readCases();

describe("BUS-2 the page of the wire", () => {
  it("names each rule once, and numbers those of a section without a gap", () => {
    expect(rules.length).toBeGreaterThan(50);
    const sections = Map.groupBy(rules, (rule) => rule.replace(/-\d+$/, ""));
    for (const [section, named] of sections) {
      expect(named).toEqual(named.map((_rule, index) => `${section}-${index + 1}`));
    }
  });

  it("has a case for every rule, and no case shows a rule that is not there", () => {
    const shown = new Set(cases.flatMap((each) => each.rules));
    expect(rules.filter((rule) => !shown.has(rule))).toEqual([]);
    expect([...shown].filter((rule) => !rules.includes(rule))).toEqual([]);
  });

  it("has cases for both sides, each with a name of its own", () => {
    for (const side of ["server", "client"]) {
      const names = cases.filter((each) => each.side === side).map((each) => each.name);
      expect(names.length).toBeGreaterThan(50);
      expect(new Set(names).size).toBe(names.length);
    }
  });

  it("says which bus service serves which service of the contract", () => {
    const rows = [...page.matchAll(/^\| `([a-z-]+)` +\| (`toolbus\..*`) +\|$/gm)];
    const said = rows.flatMap(([, process = "", names = ""]) =>
      [...names.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => `${name} → ${process}`),
    );
    const served = [...publicServices, ...internalServices].map((each) => `${each.typeName} → ${processOf(each)}`);
    expect(said.toSorted()).toEqual(served.toSorted());
  });
});
