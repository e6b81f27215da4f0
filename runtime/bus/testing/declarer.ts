import { openBus } from "../bus.ts";

/** A process that opens a bus as soon as it is told to, for races of many. */
const settings = JSON.parse(process.argv[2] ?? "{}") as { url: string; user: string; password: string };
process.send?.("loaded");
process.once("message", async () => {
  const bus = await openBus({ ...settings, name: "declarer" });
  await bus[Symbol.asyncDispose]();
  process.disconnect();
});
