import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import type { Violation } from "@bufbuild/protovalidate";
import { contractValidator } from "#runtime/schema/contract/contract-validator.ts";

/** What the contract's own constraints say against a message, each fault with its path as files write it. */
export function faultsByContract<D extends DescMessage>(schema: D, message: MessageShape<D>): string[] {
  const result = contractValidator.validate(schema, message);
  if (result.kind === "error") throw result.error;
  return result.kind === "valid" ? [] : result.violations.map((one) => `${pathOf(one)}: ${one.message}`);
}

function pathOf({ field }: Violation): string {
  const steps = field.map((step) => {
    if (step.kind === "list_sub") return `[${step.index}]`;
    if (step.kind === "map_sub") return `.${String(step.key)}`;
    return `.${step.kind === "oneof" ? step.name : step.jsonName}`;
  });
  return steps.join("").replace(/^\./, "");
}
