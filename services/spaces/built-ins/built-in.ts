import type { z } from "zod";
import { Effect, type Tool } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { ResultStore } from "#runtime/results/store/store.ts";
import { type BuiltInDefinition, builtInArguments, builtInTool } from "#runtime/schema/tools/built-in-tool.ts";
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

interface Definition<A extends z.ZodObject> extends BuiltInDefinition<A> {
  endsRun?: boolean;
  run: (rooms: Rooms, call: BuiltInCall, given: z.infer<A>) => Promise<unknown>;
}

export function defineBuiltIn<A extends z.ZodObject>(definition: Definition<A>): BuiltIn {
  return {
    tool: builtInTool(definition),
    endsRun: definition.endsRun ?? false,
    run: async (rooms, call, json) => definition.run(rooms, call, builtInArguments(definition.arguments, json)),
  };
}

export const pure = Effect.PURE;
export const idempotent = Effect.IDEMPOTENT;
