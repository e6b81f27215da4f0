import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { AgentSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { catalogueOf, tool } from "../../testing/fakes/tools.ts";
import { decideAsks } from "./asks.ts";

const sources = [
  { name: "files", provider: "mcp" },
  { name: "search", provider: "mcp" },
  { name: "report", provider: "worker" },
];
const options = {
  catalogue: catalogueOf(tool("echo"), tool("notes", { executionType: ExecutionType.HOSTED })),
  providers: ["mcp", "worker", "caller", "spaces"],
  find: () => undefined,
  hasSession: true,
};

function asked(use: string[]): string[] {
  const agent = create(AgentSchema, { name: "tester", sources, tools: { use } });
  return decideAsks(agent, options).map(({ provider, sources: of }) =>
    [provider, ...of.map(({ name }) => name)].join(" "),
  );
}

test("ORCH-6 only providers and sources that the agent uses are followed, and what everybody has", () => {
  expect(asked([])).toEqual(["caller", "spaces"]);
  expect(asked(["echo"])).toEqual(["caller", "spaces"]);
  expect(asked(["@files/read"])).toEqual(["mcp files", "caller", "spaces"]);
  expect(asked(["@search/*", "@report/make"])).toEqual(["mcp search", "worker report", "caller", "spaces"]);
});

test("all providers are asked for their own offer when something is used that no source has", () => {
  expect(asked(["@elsewhere/tool"])).toEqual(["mcp", "worker", "caller", "spaces"]);
  expect(asked(["*"])).toEqual(["mcp files search", "worker report", "mcp", "worker", "caller", "spaces"]);
});

test("WORK-12 the provider that runs a tool of the catalogue is asked what it is like, when the tool is in use", () => {
  expect(asked(["notes"])).toEqual(["worker", "caller", "spaces"]);
  expect(asked(["@files/*", "no*"])).toEqual(expect.arrayContaining(["mcp files", "worker"]));
});
