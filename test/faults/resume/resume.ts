import { parseArgs } from "node:util";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { type Edit, openTreeCopy } from "../processes/tree.ts";
import { runResumes } from "./run.ts";
import { openWorld } from "./world.ts";

const USAGE = `usage: npm run faults -- resume [options]

Clients of a gateway leave a run after each update and come back where they stood, while orchestrators and the gateway freeze, lose their
links and die. No delta may be missing without a reset, or come twice.

  --seed N      which faults, and in which order (1)
  --runs N      how many runs are followed (40)
  --at-once N   at a time (4)
  --without gaps  takes away, in a copy of the tree, that a gap is noticed, and wants a violation
  --json        the result as JSON
  --help`;

/** What may be taken away to see that the checker finds it. */
export const withouts: Readonly<Record<string, { readonly edits: readonly Edit[] }>> = {
  gaps: {
    edits: [
      {
        file: "services/orchestrator/runs/watch/delta-cursor.ts",
        from: "  if (index > next) return { ...stay, isGap: true };\n",
        to: "",
      },
    ],
  },
};

const options = {
  seed: { type: "string", default: "1" },
  runs: { type: "string", default: "40" },
  "at-once": { type: "string", default: "4" },
  without: { type: "string" },
  json: { type: "boolean", default: false },
  help: { type: "boolean", default: false },
} as const;

/** Gives the exit code. */
export async function runResumeFaults(args: string[]): Promise<number> {
  const values = parse(args);
  if (typeof values === "string") {
    console.error(`${values}\n${USAGE}`);
    return 2;
  }
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  const without = values.without === undefined ? undefined : withouts[values.without];
  await using tree = await openTreeCopy({ edits: without?.edits });
  await using world = await openWorld(tree.directory);
  const [seed, runs, atOnce] = [values.seed, values.runs, values["at-once"]].map(Number) as [number, number, number];
  const { violations, ...counts } = await runResumes(world, { seed, runs, atOnce });
  if (values.json) console.log(JSON.stringify({ violations, ...counts }));
  else console.error(counts);
  for (const { rule, what } of violations.slice(0, 20)) console.error(`VIOLATION ${rule}: ${what}`);
  console.error(`${counts.resumes} resumes, ${violations.length} violations`);
  const isAsWanted = without === undefined ? violations.length === 0 : violations.length > 0;
  return isAsWanted && counts.resumes > 0 ? 0 : 1;
}

/** The options, or what is wrong with them. */
function parse(args: string[]) {
  try {
    const { values } = parseArgs({ args, options });
    const { without, seed, runs, "at-once": atOnce } = values;
    if (without !== undefined && withouts[without] === undefined) return `there is no part ${without}`;
    const areNumbers = [seed, runs, atOnce].every((value) => Number(value) >= 0);
    return areNumbers ? values : "--seed, --runs and --at-once are numbers";
  } catch (error) {
    return messageFromUnknown(error);
  }
}
