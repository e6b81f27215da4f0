// BUS-1: what a request may hold is bounded by the contract, since a limit cannot come after the release.

import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { ToolProviderService } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { publicServices } from "../../../services/processes.ts";
import { type Rules, ruledElements } from "../../../tools/release/compare/rule-values.ts";

const requests = [...publicServices, ToolProviderService].flatMap(({ methods }) => methods.map(({ input }) => input));

const messages = reachableFrom(requests);

/** JSON texts that may fill their message: its limit is theirs. A rule of their own would count each character at each service. */
const boundedByMessage: ReadonlySet<string> = new Set([
  "toolbus.caller.v1.RespondRequest.result_json",
  "toolbus.provider.v1.ExecuteToolRequest.arguments_json",
  "toolbus.provider.v1.InputResponse.result_json",
  "toolbus.run.v1.ToolOutput.result_json",
  "toolbus.space.v1.AnswerToolCallRequest.result_json",
  "toolbus.tool.v1.CallToolRequest.arguments_json",
  "toolbus.tool.v1.SubmitToolResultRequest.result_json",
]);

describe("what the contract's requests hold", () => {
  it("BUS-1 has an upper limit: each text, list, map and duration", () => {
    expect(messages.size).toBeGreaterThan(80);
    const found = [...messages].flatMap((message) => message.fields.filter((field) => !isBounded(message, field)));
    const names = found.map(({ parent, name }) => `${parent.typeName}.${name}`);
    expect(new Set(names)).toEqual(boundedByMessage);
  });

  // `not_in` says that one is open on purpose: what an older release does not know of it, it passes over
  it("BUS-1 is a known value where it is an enum", () => {
    const open = [...messages].flatMap((message) =>
      message.fields.filter(
        (field) => field.enum !== undefined && !allows(message, field, /(^|\.)(defined_only|in|not_in)$|^cel$/),
      ),
    );
    expect(open.map(({ parent, name }) => `${parent.typeName}.${name}`)).toEqual([]);
  });
});

function reachableFrom(roots: readonly DescMessage[], found = new Set<DescMessage>()): Set<DescMessage> {
  for (const message of roots) {
    if (found.has(message) || message.typeName.startsWith("google.protobuf.")) continue;
    found.add(message);
    reachableFrom(
      message.fields.flatMap((field) => field.message ?? []),
      found,
    );
  }
  return found;
}

function isBounded(message: DescMessage, field: DescField): boolean {
  const { fieldKind } = field;
  if (fieldKind === "list") {
    const areItems =
      field.listKind !== "scalar" || field.scalar !== ScalarType.STRING || allows(message, field, /items\.string\./);
    return areItems && allows(message, field, /^repeated\.max_items$/);
  }
  if (fieldKind === "map")
    return allows(message, field, /^map\.max_pairs$/) && allows(message, field, /values\.string\.max_/);
  if (fieldKind === "scalar" && (field.scalar === ScalarType.STRING || field.scalar === ScalarType.BYTES))
    return allows(message, field, /^(string|bytes)\.(max_len|max_bytes|pattern|in)$/);
  if (fieldKind === "message" && field.message.typeName === "google.protobuf.Duration")
    return allows(message, field, /^duration\.lte$/);
  return true;
}

function allows(message: DescMessage, { number }: DescField, rule: RegExp): boolean {
  const rules: Rules = ruledElements(message).get(`field ${number}`)?.rules ?? new Map();
  return [...rules.keys()].some((path) => rule.test(path));
}
