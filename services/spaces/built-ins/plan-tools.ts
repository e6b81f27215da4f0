import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { z } from "zod";
import { MemoryEntrySchema, MemoryKind } from "#gen/toolbus/space/v1/memory_pb.ts";
import { refuseField } from "#runtime/failure/failure.ts";
import type { Clock } from "#runtime/time/clock.ts";
import { planForModel } from "../messages/transcript.ts";
import { defineBuiltIn, idempotent, pure } from "./built-in.ts";
import { deleteTool, key } from "./memory-tools.ts";

const at = z
  .string()
  .regex(
    /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/,
    "must be a date and time with Z or an offset",
  )
  .optional()
  .describe(
    "When it is to wake you, for example 2027-01-31T09:00:00Z or with an offset like +02:00; without it, never. A time that " +
      "has passed wakes you at once. get_plans tells what time it is.",
  );

const setPlans = defineBuiltIn({
  name: "set_plans",
  description:
    "Create or replace plans: what you mean to do. A plan with a time wakes you once when that time has come: you find it " +
    "in your inbox. Read your plans with get_plans.",
  effect: idempotent,
  arguments: z.strictObject({
    entries: z
      .array(z.strictObject({ key, text: z.string().min(1).max(65_536).describe("The plan, in your own words."), at }))
      .min(1)
      .max(100),
  }),
  async run(rooms, call, { entries }) {
    const plan = ({ key, text, at }: (typeof entries)[number]) => ({
      ...{ kind: MemoryKind.PLAN, key, text },
      ...(at !== undefined && { dueTime: timestampFromMs(msFromText(at)) }),
    });
    await rooms.memory.set(
      call,
      entries.map((entry) => create(MemoryEntrySchema, plan(entry))),
    );
    return { set: entries.length, now: nowOf(rooms.clock) };
  },
});

const getPlans = defineBuiltIn({
  name: "get_plans",
  description:
    "Read your plans, each with the key by which you replace or delete it, with its time if it has one, and with the time " +
    "when it woke you if it has done so. Tells the time now.",
  effect: pure,
  arguments: z.strictObject({}),
  async run(rooms, call) {
    const plans = await rooms.memory.list(call, MemoryKind.PLAN);
    return { now: nowOf(rooms.clock), plans: plans.map(planForModel) };
  },
});

function msFromText(at: string): number {
  const ms = Date.parse(at);
  if (Number.isNaN(ms)) return refuseField("at", `there is no time ${at}`);
  return isDay(at.slice(0, "2027-01-31".length)) ? ms : refuseField("at", `there is no such day: ${at}`);
}

/** What reads a date takes February 30 for March 2. */
function isDay(text: string): boolean {
  return new Date(`${text}T00:00:00Z`).toISOString().startsWith(text);
}

function nowOf(clock: Clock): string {
  return new Date(clock.now()).toISOString();
}

export const planTools = [setPlans, deleteTool(MemoryKind.PLAN, " A deleted plan does not wake you."), getPlans];
