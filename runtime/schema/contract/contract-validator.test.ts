import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { CreateRunRequestSchema } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { computedMs } from "../../time/testing/machine-time.ts";
import { contractValidator } from "./contract-validator.ts";

type Input = NonNullable<MessageInitShape<typeof CreateRunRequestSchema>["input"]>;

function faultsOf(items: number): string[] {
  const input: Input = Array.from({ length: items }, () => ({}));
  const message = create(CreateRunRequestSchema, { agent: "a b", input });
  const result = contractValidator.validate(CreateRunRequestSchema, message);
  return (result.violations ?? []).map(({ message }) => message);
}

test("PROD-5 all faults of a small message are told", () => {
  expect(faultsOf(3)).toHaveLength(4);
});

test("SEC-5 of a large one the first is told: 100,000 faults kept a process busy for 5 s", async () => {
  expect(faultsOf(5_000)).toHaveLength(1);
  expect(await computedMs(() => expect(faultsOf(100_000)).toHaveLength(1))).toBeLessThan(2_000);
});
