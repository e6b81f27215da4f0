import { openBus } from "../bus.ts";
import type { BusLogin } from "../credentials/login.ts";

/** A process that opens a bus as soon as it is told to, for races of many. */
const settings = JSON.parse(process.argv[2] ?? "{}") as { url: string; login: BusLogin };
process.send?.("loaded");
process.once("message", async () => {
  const bus = await openBus({ ...settings, name: "declarer" });
  await bus[Symbol.asyncDispose]();
  process.disconnect();
});
