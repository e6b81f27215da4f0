import { type BuiltinPolicy, BuiltinSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { namesOf } from "./spelling.ts";

/** The names of the built-ins that need a policy, as files and providers write them. */
export const POLICY_BUILT_IN_NAMES: readonly string[] = namesOf(BuiltinSchema);

/** The name of the built-in that a policy is for; undefined where it is for none. */
export function builtInName(policy: Pick<BuiltinPolicy, "builtin"> | undefined): string | undefined {
  const value = BuiltinSchema.values.find(({ number }) => number !== 0 && number === policy?.builtin);
  return value && POLICY_BUILT_IN_NAMES[BuiltinSchema.values.indexOf(value) - 1];
}
