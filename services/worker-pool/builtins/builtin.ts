import { create } from "@bufbuild/protobuf";
import { z } from "zod";
import { type BuiltinPolicy, Effect, ExecutionType, type Tool, ToolSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { refuseLocally } from "#runtime/failure/local-failure.ts";
import type { Confinement } from "#runtime/lifecycle/child-process/confinement.ts";
import type { ResourceLimits } from "#runtime/lifecycle/child-process.ts";

export interface BuiltinCall {
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
export interface Builtin {
  readonly tool: Tool;
  /** Gives what is answered as a value; a Failure is the tool's error, for the model to read. */
  run(call: BuiltinCall, argumentsJson: string, commands: CommandSettings): Promise<unknown>;
}

const EFFECTS = { pure: Effect.PURE, at_most_once: Effect.AT_MOST_ONCE } as const;

export function defineBuiltin<A extends z.ZodObject>(definition: {
  name: string;
  description: string;
  effect: keyof typeof EFFECTS;
  arguments: A;
  run: (given: z.infer<A>, call: BuiltinCall, commands: CommandSettings) => Promise<unknown>;
}): Builtin {
  const tool = create(ToolSchema, {
    name: definition.name,
    description: definition.description,
    inputSchemaJson: JSON.stringify(z.toJSONSchema(definition.arguments, { io: "input" })),
    executionType: ExecutionType.BUILTIN,
    visible: false,
    effect: EFFECTS[definition.effect],
  });
  return {
    tool,
    run: async (call, json, commands) => definition.run(parseArguments(definition.arguments, json), call, commands),
  };
}

/** The router validates too, but by the catalogue's schema, which its operator may have written. */
function parseArguments<A extends z.ZodObject>(schema: A, json: string): z.infer<A> {
  const parsed = schema.safeParse(JSON.parse(json));
  return parsed.success ? parsed.data : refuseLocally("invalid_argument", z.prettifyError(parsed.error));
}
