import { runLoopFaults } from "./loop.ts";
import { runResumeFaults } from "./resume/resume.ts";
import { runRouterFaults } from "./router.ts";
import { runSilenceFaults } from "./silence/silence.ts";
import { runSwitchFaults } from "./switch.ts";

/** Each takes its own words of the command line, and gives the exit code: 0 for no violation, 1 for some, 2 for a misuse. */
const runs: Record<string, (args: string[]) => Promise<number>> = {
  loop: runLoopFaults,
  resume: runResumeFaults,
  router: runRouterFaults,
  silence: runSilenceFaults,
  switch: runSwitchFaults,
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
