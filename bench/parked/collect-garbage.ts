/**
 * Imported into each service that is measured: at SIGUSR2 it gives back all memory that nothing holds. What is left is what the
 * service keeps; what V8 has not yet found worth collecting is no cost of a parked run.
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as (options: { type: string; execution: string; flavor: string }) => void;
process.on("SIGUSR2", () => collect({ type: "major", execution: "sync", flavor: "last-resort" }));
