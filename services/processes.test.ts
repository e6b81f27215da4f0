import { expect, test } from "vitest";
import { ToolProviderService } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { internalServices, processOf, publicServices } from "./processes.ts";

test("BUS-1 each service of the contract has the process that serves it", () => {
  expect(processOf(RunService)).toBe("orchestrator");
  expect(publicServices.map(processOf)).toHaveLength(15);
  expect(internalServices.map(processOf)).toEqual(["spaces", "spaces", "spaces"]);
});

test("BUS-1 a service that many serve has none: its caller names one", () => {
  expect(() => processOf(ToolProviderService)).toThrow(
    "toolbus.provider.v1.ToolProviderService is not served by one process: name the one that is meant",
  );
});

test("BUS-1 what only services call is no public service", () => {
  const names = publicServices.map(({ typeName }) => typeName);
  expect(names.filter((name) => name.startsWith("toolbus.internal."))).toEqual([]);
  expect(names).not.toContain(ToolProviderService.typeName);
});
