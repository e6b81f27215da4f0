import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** How many bytes of the heap one round of the work leaves held, as the mean of so many. */
export async function keptBytes(work: () => Promise<unknown>, count = 2_000): Promise<number> {
  const heapAfter = async (rounds: number) => {
    for (let round = 0; round < rounds; round += 1) await work();
    await new Promise(setImmediate);
    collectGarbage();
    return process.memoryUsage().heapUsed;
  };
  const before = await heapAfter(count / 4); // what is kept once is kept by then
  return ((await heapAfter(count)) - before) / count;
}
