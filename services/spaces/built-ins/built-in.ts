import { create } from "@bufbuild/protobuf";
import { z } from "zod";
import { Effect, ExecutionType, type Tool, ToolSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { refuseRequest } from "#runtime/failure/failure.ts";
import type { ResultStore } from "#runtime/results/store/store.ts";
import { inForm } from "#runtime/schema/zod-form.ts";
import type { Clock } from "#runtime/time/clock.ts";
import type { Memory } from "../memory/memory.ts";
import type { Messages } from "../messages/messages.ts";
import type { Owner } from "../owners/owner.ts";
import type { Sessions } from "../owners/sessions.ts";
import type { Membership } from "../space/membership.ts";
import type { SpaceAccess } from "../space/space-access.ts";

/** On whose behalf a built-in runs. The call's id makes a repeated call one with the first. */
export interface BuiltInCall extends Owner {
  callId: string;
  /** Who opened the session; empty when the call is a service's own. */
  principal: string;
  /** Whether whoever caused the call owns the session; another principal may run its agent, without what the agent keeps. */
  isByOwner: boolean;
}

export interface Rooms {
  membership: Membership;
  access: SpaceAccess;
  messages: Messages;
  memory: Memory;
  results: Pick<ResultStore, "find" | "read">;
  sessions: Pick<Sessions, "haveOneOwner">;
  clock: Clock;
}

/** A tool that every agent has. What it refuses is its error result. */
export interface BuiltIn {
  readonly tool: Tool;
  /** Whether the run that called is over with the tool's result. */
  readonly endsRun: boolean;
  run(rooms: Rooms, call: BuiltInCall, argumentsJson: string): Promise<unknown>;
}

interface Definition<A extends z.ZodObject> {
  name: string;
  description: string;
  effect: Effect;
  endsRun?: boolean;
  arguments: A;
  run: (rooms: Rooms, call: BuiltInCall, given: z.infer<A>) => Promise<unknown>;
}

export function defineBuiltIn<A extends z.ZodObject>(definition: Definition<A>): BuiltIn {
  const tool = create(ToolSchema, {
    name: definition.name,
    description: definition.description,
    inputSchemaJson: JSON.stringify(z.toJSONSchema(definition.arguments, { io: "input" })),
    executionType: ExecutionType.BUILTIN,
    visible: false,
    effect: definition.effect,
  });
  return {
    tool,
    endsRun: definition.endsRun ?? false,
    run: async (rooms, call, json) => definition.run(rooms, call, parseArguments(definition.arguments, json)),
  };
}

/** The router has validated them; this is for whoever calls without it. */
function parseArguments<A extends z.ZodObject>(schema: A, json: string): z.infer<A> {
  let value: unknown;
  try {
    value = JSON.parse(json === "" ? "{}" : json);
  } catch (cause) {
    const fault = { field: "arguments_json", message: "is no JSON text" };
    return refuseRequest("the arguments are no JSON text", fault, cause);
  }
  return inForm(schema, value);
}

export const pure = Effect.PURE;
export const idempotent = Effect.IDEMPOTENT;
