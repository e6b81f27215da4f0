import { runLoopFaults } from "./loop/loop.ts";
import { runOutageFaults } from "./outage/outage.ts";
import { runResumeFaults } from "./resume/resume.ts";
import { runRouterFaults } from "./router/router.ts";
import { runSwitchFaults } from "./switch/switch.ts";
import { runWorkersFaults } from "./workers/workers.ts";

const runs: Record<string, (args: string[]) => Promise<number>> = {
  loop: runLoopFaults,
  outage: runOutageFaults,
  resume: runResumeFaults,
  router: runRouterFaults,
  switch: runSwitchFaults,
  workers: runWorkersFaults,
};

const USAGE = `usage: npm run faults -- <${Object.keys(runs).join("|")}> [options]
       npm run faults -- <name> --help`;

const [name = "", ...args] = process.argv.slice(2);
const run = runs[name];
if (run === undefined) {
  console.error(USAGE);
  process.exit(2);
}
process.exit(await run(args));
