import type { Attack } from "../attack.ts";
import { bodies } from "./bodies.ts";
import { bus } from "./bus.ts";
import { costs } from "./costs.ts";
import { doors } from "./doors.ts";
import { fuzz } from "./fuzz.ts";
import { ids } from "./ids.ts";
import { outward } from "./outward.ts";
import { tools } from "./tools.ts";

export const attacks: readonly Attack[] = [
  ...doors,
  ...bus,
  ...ids,
  ...tools,
  ...outward,
  ...bodies,
  ...costs,
  ...fuzz,
];

export const shortAttacks: readonly Attack[] = attacks.filter(({ isLong = false }) => !isLong);
