import { Command } from "commander";
import { expect, test } from "vitest";
import { askedBy } from "./asked.ts";

const program = new Command("toolbus").option("-u, --url <url>").option("--json");
program.command("run").argument("<agent>").argument("<input...>").option("-s, --session <id>").option("--keep");
program.command("call").argument("<tool>").argument("[arguments]").option("-a, --agent <name>");
program.command("explain").argument("<agent>").argument("<tool>");
program.command("sessions").command("switch").argument("<id>").argument("<agent>");
program.command("agents").command("show").argument("<name>");

test.each([
  [["run", "de"], { kind: "agents" }],
  [["run", "--keep", "de"], { kind: "agents" }],
  [["run", "demo", "he"], undefined],
  [["run", "demo", "-s", ""], { kind: "sessions" }],
  [["run", "--session", "s1", ""], { kind: "agents" }],
  [["-u", "http://x", "--json", "run", ""], { kind: "agents" }],
  [["call", "@e"], { kind: "tools" }],
  [["call", "-a", "demo", "@e"], { kind: "tools", agent: "demo" }],
  [["call", "-a", "de"], { kind: "agents" }],
  [["call", "@e/echo", "-a", ""], { kind: "agents" }],
  [["explain", "demo", "@"], { kind: "tools", agent: "demo" }],
  [["sessions", "switch", ""], { kind: "sessions" }],
  [["sessions", "switch", "s1", ""], { kind: "agents" }],
  [["agents", "show", ""], { kind: "agents" }],
  [["run", "--ke"], undefined],
  [["ru"], undefined],
  [["run", "--url", ""], undefined],
])("CLI %j asks the suite for %j", (words, asked) => {
  expect(askedBy(program, words)).toEqual(asked);
});
