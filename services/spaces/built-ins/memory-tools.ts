import { create } from "@bufbuild/protobuf";
import { z } from "zod";
import { MemoryEntrySchema, MemoryKind } from "#gen/toolbus/space/v1/memory_pb.ts";
import { pluralOf } from "../messages/transcript.ts";
import { type BuiltIn, defineBuiltIn, idempotent } from "./built-in.ts";

export const key = z
  .string()
  .min(1)
  .max(128)
  .describe("A short name of your choice, by which you replace or delete it later.");
const keys = z.array(key).min(1).max(1_000).describe("The keys to delete; those that do not exist are passed over.");

function setTool(kind: MemoryKind, description: string, whatText: string): BuiltIn {
  const plural = pluralOf(kind);
  const text = z.string().min(1).max(65_536).describe(whatText);
  return defineBuiltIn({
    name: `set_${plural}`,
    description,
    effect: idempotent,
    arguments: z.strictObject({ entries: z.array(z.strictObject({ key, text })).min(1).max(100) }),
    async run(rooms, call, { entries }) {
      const given = entries.map((entry) => create(MemoryEntrySchema, { ...entry, kind }));
      await rooms.memory.set(call, given);
      return { set: entries.length };
    },
  });
}

export function deleteTool(kind: MemoryKind, more = ""): BuiltIn {
  const plural = pluralOf(kind);
  return defineBuiltIn({
    name: `delete_${plural}`,
    description: `Delete ${plural} of yours by their keys. Returns how many there were.${more}`,
    effect: idempotent,
    arguments: z.strictObject({ keys }),
    async run(rooms, call, given) {
      return { deleted: await rooms.memory.delete(call, kind, given.keys) };
    },
  });
}

export const memoryTools = [
  setTool(
    MemoryKind.GOAL,
    "Create or replace goals: what you want to reach. They stand in your instructions in every run of this session.",
    "The goal, in your own words.",
  ),
  deleteTool(MemoryKind.GOAL),
  setTool(
    MemoryKind.MEMORY,
    "Create or replace memories: what you want to know later. They stand in your instructions in every run of this session.",
    "What to remember, in your own words.",
  ),
  deleteTool(MemoryKind.MEMORY),
];
