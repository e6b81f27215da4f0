import type { z } from "zod";
import type { BuiltinPolicy, Tool } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { ResourceLimits } from "#runtime/lifecycle/child-process/child-process.ts";
import type { Confinement } from "#runtime/lifecycle/child-process/confinement.ts";
import { type BuiltInDefinition, builtInArguments, builtInTool } from "#runtime/schema/tools/built-in-tool.ts";

export interface BuiltInCall {
  /** From the catalogue, by way of the router; nothing of it comes from the model. */
  policy: BuiltinPolicy;
  /** How long it may take. */
  timeoutMs: number;
  signal: AbortSignal;
}

/** What this machine gives to commands. */
export interface CommandSettings {
  /** Where programs that are allowed by their bare name are looked for. */
  searchPath: string;
  limits: ResourceLimits;
  confinement: Confinement | undefined;
}

/** A tool that is nothing without the policy that its catalogue entry gives it. */
export interface BuiltIn {
  readonly tool: Tool;
  /** Gives what is answered as a value; a Failure is the tool's error, for the model to read. */
  run(call: BuiltInCall, argumentsJson: string, commands: CommandSettings): Promise<unknown>;
}

interface Definition<A extends z.ZodObject> extends BuiltInDefinition<A> {
  run: (given: z.infer<A>, call: BuiltInCall, commands: CommandSettings) => Promise<unknown>;
}

export function defineBuiltIn<A extends z.ZodObject>(definition: Definition<A>): BuiltIn {
  return {
    tool: builtInTool(definition),
    run: async (call, json, commands) => definition.run(builtInArguments(definition.arguments, json), call, commands),
  };
}
