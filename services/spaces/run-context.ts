import type { GetRunContextResponse, InstructionPart } from "#gen/toolbus/internal/space/v1/run_context_service_pb.ts";
import type { InboxEvent } from "#gen/toolbus/space/v1/inbox_pb.ts";
import { type MemoryEntry, MemoryKind } from "#gen/toolbus/space/v1/memory_pb.ts";
import type { Inbox } from "./inbox/inbox.ts";
import { instruction, meaningOfLines } from "./inbox/inbox-text.ts";
import type { Memory } from "./memory/memory.ts";
import type { Owner } from "./owners/owner.ts";
import type { Membership } from "./space/membership.ts";

export type RunContext = Omit<GetRunContextResponse, "$typeName" | "$unknown">;

export interface RunContextParts {
  membership: Pick<Membership, "activeSpace">;
  inbox: Pick<Inbox, "list">;
  memory: Pick<Memory, "list">;
}

/** What a run of an agent is told besides the agent's own instructions. */
export function createRunContext({ membership, inbox, memory }: RunContextParts) {
  return async (owner: Owner): Promise<RunContext> => {
    const [spaceId = "", events, entries] = await Promise.all([
      membership.activeSpace(owner),
      inbox.list(owner),
      memory.list(owner, MemoryKind.UNSPECIFIED),
    ]);
    return { parts: partsFrom(spaceId, entries, events.length > 0), events: withinRoom(events), spaceId };
  };
}

const mostCharacters = 512 * 1_024;

/** At least one, however long it is; what has no room waits for the next run. */
function withinRoom(events: readonly InboxEvent[]): InboxEvent[] {
  let characters = 0;
  return events.filter(({ text }, index) => {
    characters += text.length;
    return index === 0 || characters <= mostCharacters;
  });
}

/** Alike for alike states: what a provider has cached of a prompt stays good. */
function partsFrom(spaceId: string, entries: readonly MemoryEntry[], hasEvents: boolean): InstructionPart[] {
  return [
    ...whereItIs(spaceId),
    ...meaningOfLines(hasEvents || spaceId !== ""),
    ...section("Your goals", ["set_goals", "delete_goals"], entries, MemoryKind.GOAL),
    ...section("Your memories", ["set_memories", "delete_memories"], entries, MemoryKind.MEMORY),
  ];
}

/** A client may enter an agent into a space that has no tool for it. */
function whereItIs(spaceId: string): InstructionPart[] {
  const outside = "You are in no space. Call enter_space before you call a tool that people see, or speak to them.\n\n";
  if (spaceId === "") return [instruction(outside, ["enter_space"])];
  return [
    instruction(`You are in the space ${spaceId}: people see your visible tool calls there`),
    instruction(", and what you say with send_message", ["send_message"]),
    instruction(".\n\n"),
  ];
}

function section(title: string, tools: string[], entries: readonly MemoryEntry[], kind: MemoryKind): InstructionPart[] {
  const lines = entries
    .filter((entry) => entry.kind === kind)
    .map(({ key, text }) => `- ${JSON.stringify(key)}: ${text.replaceAll("\n", "\n  ")}`);
  if (lines.length === 0) return [];
  return [
    instruction(title),
    instruction(` (${tools.join(", ")})`, tools),
    instruction([":", ...lines, "\n"].join("\n")),
  ];
}
