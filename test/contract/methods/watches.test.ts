// BUS-1: every watch of the contract has the shape of its class.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type DescField, type DescMethod, ScalarType } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import { ToolProviderService } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { internalServices, publicServices } from "../../../services/processes.ts";
import { projectRoot } from "../../architecture/source-files.ts";

/** What a watch follows. `work` is handed out, and `lines` and `news` are kept nowhere: there is nothing to go back to. */
const classes: Record<string, "log" | "state" | "work" | "lines" | "news"> = {
  WatchRun: "log",
  WatchRuns: "log",
  WatchAuditEvents: "log",
  WatchInboxEvents: "log",
  WatchSpace: "log",
  WatchSession: "state",
  WatchAgents: "state",
  WatchConnections: "state",
  WatchDeclaration: "state",
  WatchProvidedTools: "state",
  WatchToolCalls: "work",
  WatchCaller: "work",
  WatchWorkerLogs: "lines",
  WatchResources: "news",
};

const methods = [...publicServices, ...internalServices, ToolProviderService].flatMap((service) => service.methods);
const watches = [...new Map(methods.filter(({ name }) => name.startsWith("Watch")).map((one) => [one.name, one]))];
const ofClass = (...wanted: string[]) => watches.filter(([name]) => wanted.includes(classes[name] ?? ""));

const protos = readdirSync(join(projectRoot, "proto"), { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".proto"))
  .map((path) => readFileSync(join(projectRoot, "proto", path), "utf8"))
  .join("\n");

/** The comment in front of a message's definition, on one line. */
function commentOf({ input }: DescMethod): string {
  return (new RegExp(`((?:// .*\\n)+)message ${input.name} \\{`).exec(protos)?.[1] ?? "").replace(/\n\/\/ /g, " ");
}

it("BUS-1 every watch is of a class, and streams", () => {
  expect(watches.map(([name]) => name).toSorted()).toEqual(Object.keys(classes).toSorted());
  for (const [, { methodKind }] of watches) expect(methodKind).toBe("server_streaming");
});

describe.each(ofClass("log"))("%s", (_, { input, output }) => {
  it("BUS-1 takes an optional uint64 from_sequence: absent from now on, 0 for all", () => {
    expect(scalarOf(input.field.fromSequence)).toEqual(["from_sequence", ScalarType.UINT64]);
    expect(input.field.fromSequence?.presence).toBe(FeatureSet_FieldPresence.EXPLICIT);
    const request = new RegExp(`message ${input.name} \\{([^]*?)\\n\\}`).exec(protos)?.[1] ?? "";
    expect(request).toMatch(/0 for all[^.]*, absent for those from now on/);
  });

  it("BUS-1 tells a start, gaps and events, each of which has its sequence, and nothing beside them", () => {
    expect(output.members).toHaveLength(1);
    const arms = new Map(output.oneofs[0]?.fields.map((field) => [field.name, field.message]));
    expect(arms.get("start")?.typeName).toBe("toolbus.watch.v1.WatchStart");
    expect(arms.get("gap")?.typeName).toBe("toolbus.watch.v1.WatchGap");
    expect(scalarOf(arms.get("event")?.field.sequence)[0]).toBe("sequence");
  });
});

describe.each(ofClass("state"))("%s", (_, { input, output }) => {
  it("BUS-1 tells what stands, with an etag, and takes no place to go on from", () => {
    expect(scalarOf(output.field.etag)).toEqual(["etag", ScalarType.STRING]);
    expect(input.field.fromSequence).toBeUndefined();
    expect(output.oneofs).toEqual([]);
  });
});

describe.each(ofClass("work", "lines"))("%s", (_, method) => {
  it("BUS-1 tells one thing at a time, takes no from_sequence, and says why", () => {
    expect(method.input.field.fromSequence).toBeUndefined();
    expect(method.output.members.map(({ kind }) => kind)).toEqual(["oneof"]);
    expect(commentOf(method)).toMatch(/no `from_sequence`|no sequence to go back to/);
  });
});

function scalarOf(field: DescField | undefined) {
  return [field?.name, field?.fieldKind === "scalar" ? field.scalar : undefined];
}
