import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { type RefusedFile, RefusedFileSchema } from "#gen/toolbus/tool/v1/refused_file_pb.ts";
import { SourceStatusSchema } from "#gen/toolbus/tool/v1/source_pb.ts";
import { agent, catalogueOf, offer, tool } from "../testing/fakes/tools.ts";
import { alternatives, closestNames } from "./advice.ts";
import { refusalOfMissing } from "./refusal.ts";
import type { Offer } from "./tool-set/offer.ts";
import { createToolSet } from "./tool-set/tool-set.ts";

const toolUse = {
  use: ["@files/*", "weather", "secret_weather"],
  allowed: { names: ["@files/read_file", "@files/list_directory", "weather"] },
  aliases: { forecast: "weather" },
};
const offers = [offer("mcp", { files: ["read_file", "write_file", "list_directory"] })];
const catalogue = catalogueOf(tool("weather"), tool("secret_weather"), tool("hidden"));
const tools = createToolSet(agent(toolUse), catalogue, offers);

test.each([
  ["@files/read_fil", ["files__read_file"]],
  ["read_file", ["files__read_file"]],
  ["files.readFile", ["files__read_file"]],
  ["READ-FILE", ["files__read_file"]],
  ["forcast", ["weather"]],
  ["get_weather", ["weather"]],
  ["secret_weather", ["weather"]],
  ["hiden", []],
  ["x".repeat(500), []],
])("ORCH-2 %s is closest to %j, and nothing that may not be called is named", (name, closest) => {
  expect(closestNames(tools, name)).toEqual(closest);
});

test("ORCH-2 where no name is close, all are told, and how many there are", () => {
  expect(alternatives(tools, "hammer")).toBe('It may call: "files__list_directory", "files__read_file", "weather".');
  expect(alternatives(createToolSet(agent(), catalogue, []), "hammer")).toBe("There is no tool that it may call.");
  const many = Array.from({ length: 30 }, (_, n) => tool(`t${n}`));
  const wide = createToolSet(agent({ use: ["*"] }), catalogueOf(...many), []);
  expect(alternatives(wide, "hammer")).toMatch(/, and 10 more\.$/);
});

test("LOOP-3 of a name that nobody has, it is said that there is no tool; not while a source is away, which may have it", () => {
  const unknown = { kind: "unknown", reference: "@shed/hammer" } as const;
  expect(refusalOfMissing(tools, unknown, "@shed/hammer").message).toContain('There is no tool "@shed/hammer"');
  const away = { ...offer("worker", {}), failure: "it is silent", failedSince: "2026-11-22T10:00:00.000Z" };
  const { message } = refusalOfMissing(
    createToolSet(agent(toolUse), catalogue, [...offers, away]),
    unknown,
    "@shed/hammer",
  );
  expect(message).toContain('Tool "@shed/hammer" of agent "tester" is unavailable, if it exists.');
  expect(message).toContain("worker: it is silent (since 2026-11-22T10:00:00.000Z)");
  expect(message).not.toContain("There is no tool");
  const known = { kind: "unknown", reference: "@files/hammer" } as const;
  const withAway = createToolSet(agent(toolUse), catalogue, [...offers, away]);
  expect(refusalOfMissing(withAway, known, "files__hammer").message).toContain('There is no tool "files__hammer"');
  const gone = withAway.sources.filter(({ available }) => !available);
  const shed = { ...gone[0]!, source: "shed", reason: "it is burnt" };
  const told = refusalOfMissing({ ...withAway, sources: [...gone, shed, shed] }, unknown, "@shed/hammer").message;
  expect(told).toContain("Sources that cannot be used: shed: it is burnt. It may call:");
});

test("ORCH-11 of a tool whose file is refused, that is said; nothing of files whose tools the agent does not use, or that stand", () => {
  const files = ["weather", "hammer", "saw"].map((name): [string, RefusedFile] => [
    name,
    create(RefusedFileSchema, {
      file: `tools/${name}.json`,
      faults: ["execution.url: is no URL", "colour: is unknown"],
    }),
  ]);
  const set = createToolSet(agent({ use: ["weather", "hammer"] }), catalogue, offers, new Map(files));
  const reason = "is refused: execution.url: is no URL; colour: is unknown";
  expect(set.sources.filter(({ available }) => !available)).toMatchObject([{ source: "tools/hammer.json", reason }]);
  const told = (name: string) => refusalOfMissing(set, { kind: "unknown", reference: name }, name).message;
  expect(told("hammer")).toContain(`Tool "hammer" of agent "tester" cannot be used: tools/hammer.json ${reason}.`);
  expect(told("saw")).toContain('There is no tool "saw" for agent "tester".');
});

test("ORCH-11 of a provider's own sources that cannot be used, those are told that the agent would use", () => {
  const sources = ["shed", "barn"].map((source) => create(SourceStatusSchema, { source, reason: "it is burnt" }));
  const toldTo = (use: string[], ...declared: Offer[]) =>
    createToolSet(agent({ use }), catalogue, [...declared, offer("worker", {}, { sources })]).sources;
  expect(toldTo(["@shed/*"]).map(({ source }) => source)).toEqual(["shed"]);
  expect(toldTo(["*"])).toHaveLength(2);
  expect(toldTo(["weather"])).toEqual([]);
  const declared = offer("worker", { shed: [] }, { sources: sources.slice(0, 1) });
  expect(toldTo(["*"], declared).map(({ source }) => source)).toEqual(["shed", "barn"]);
});

test("ORCH-2 advice on the longest name among 1,000 tools takes little time", () => {
  const many = Array.from({ length: 1_000 }, (_, n) => tool(`${"long_name_".repeat(5)}${n}`));
  const wide = createToolSet(agent({ use: ["*"] }), catalogueOf(...many), []);
  closestNames(wide, "warm");
  const startedAt = performance.now();
  closestNames(wide, "long_name_".repeat(51));
  expect(performance.now() - startedAt).toBeLessThan(5_000);
});
