import type { Attack } from "../attack.ts";
import { bodies } from "./bodies.ts";
import { bus } from "./bus.ts";
import { costs } from "./costs/costs.ts";
import { heavyMessages } from "./costs/heavy-messages.ts";
import { clients } from "./doors/clients.ts";
import { doors } from "./doors/methods.ts";
import { takenIds } from "./doors/taken-ids.ts";
import { messages } from "./fuzz/messages.ts";
import { fuzz } from "./fuzz/requests.ts";
import { ids } from "./ids.ts";
import { outward } from "./outward/outward.ts";
import { turncoats } from "./outward/turncoats.ts";
import { tokens } from "./tokens.ts";
import { tools } from "./tools.ts";

export const attacks: readonly Attack[] = [
  ...doors,
  ...clients,
  ...tokens,
  ...bus,
  ...ids,
  ...takenIds,
  ...tools,
  ...outward,
  ...turncoats,
  ...bodies,
  ...costs,
  ...heavyMessages,
  ...fuzz,
  ...messages,
];

export const shortAttacks: readonly Attack[] = attacks.filter(({ isLong = false }) => !isLong);
