import { bus } from "./bus.ts";
import { ctr } from "./ctr.ts";
import { door } from "./door.ts";
import { kind } from "./kind.ts";
import { loop, loopLimits } from "./loop.ts";
import { loopDurable } from "./loop-durable.ts";
import { orch } from "./orch.ts";
import { prod } from "./prod.ts";
import type { Proofs } from "./proof.ts";
import { sec } from "./sec.ts";
import { tool } from "./tool.ts";
import { work } from "./work.ts";

const families: readonly Proofs[] = [kind, ctr, loop, loopLimits, loopDurable, tool, work, orch, bus, sec, door, prod];

/** Of all families; an id that two of them have stands twice. */
export const entries = families.flatMap((family) => Object.entries(family));

export const proofs: Proofs = Object.fromEntries(entries);
