import { create } from "@bufbuild/protobuf";
import { expect, it } from "vitest";
import { type ServerReflectionRequest, ServerReflectionRequestSchema } from "#gen/grpc/reflection/v1/reflection_pb.ts";
import { computedMs } from "#runtime/time/testing/machine-time.ts";
import { publicServices } from "../processes.ts";
import { createReflection } from "./reflection.ts";

const answer = createReflection(publicServices);

function containing(symbol: string): ServerReflectionRequest {
  return create(ServerReflectionRequestSchema, { messageRequest: { case: "fileContainingSymbol", value: symbol } });
}

const casesOf = (symbols: readonly string[]) =>
  symbols.map((symbol) => answer(containing(symbol)).messageResponse?.case);

it("BUS-3 services, messages, methods and fields are found, and nothing below them", () => {
  const known = ["RunService", "RunService.GetRun", "Run", "Run.id"].map((name) => `toolbus.run.v1.${name}`);
  expect(new Set(casesOf(known))).toEqual(new Set(["fileDescriptorResponse"]));
  const unknown = ["", ".", "toolbus", "toolbus.run.v1.RunService.GetRun.x"];
  expect(new Set(casesOf(unknown))).toEqual(new Set(["errorResponse"]));
});

it("SEC-5 a name of thousands of parts, and a file asked for again and again, take next to no time", async () => {
  casesOf(["toolbus.run.v1.RunService"]); // once it is written
  const symbols = [...Array(20).fill(".".repeat(4_000)), ...Array(200).fill("toolbus.run.v1.RunService")];
  expect(await computedMs(() => casesOf(symbols))).toBeLessThan(500);
});
