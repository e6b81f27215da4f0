// The process of the attacker: it holds no more of the suite than its ground says, and what it burns is burnt elsewhere.

import { messageFromUnknown } from "#runtime/failure/failure.ts";
import type { Ground, Outcome, PlayOptions } from "../attack.ts";
import { attacks } from "../attacks/all.ts";

export type ToAttacker =
  | { readonly kind: "ground"; readonly ground: Ground }
  | { readonly kind: "play"; readonly name: string; readonly options: PlayOptions };
export type FromAttacker = Outcome & { readonly fault?: string };

let ground: Ground;

async function play(name: string, options: PlayOptions): Promise<FromAttacker> {
  try {
    const attack = attacks.find((one) => one.name === name);
    if (attack === undefined) throw new Error(`there is no attack ${name}`);
    return await attack.play(ground, options);
  } catch (error) {
    const fault = error instanceof Error ? (error.stack ?? error.message) : messageFromUnknown(error);
    return { tries: 0, reached: [], fault };
  }
}

// What an attack leaves behind, like sockets that the suite has cut.
process.on("unhandledRejection", (error) => console.error(`left behind: ${messageFromUnknown(error)}`));
process.on("uncaughtException", (error) => console.error(`left behind: ${error.stack}`));
process.on("message", async (message: ToAttacker) => {
  if (message.kind === "ground") ground = message.ground;
  else process.send?.(await play(message.name, message.options));
});
process.on("disconnect", () => process.exit());
