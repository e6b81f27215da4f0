import { faultCommand } from "../command/command.ts";
import { named, number } from "../command/options.ts";
import { type Edit, openTreeCopy } from "../processes/tree.ts";
import { runResumes } from "./run.ts";
import { openWorld } from "./world.ts";

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

export const runResumeFaults = faultCommand({
  name: "resume",
  about: `Clients of a gateway leave a run after each update and come back where they stood, while orchestrators and the gateway freeze, lose their
links and die. No delta may be missing without a reset, or come twice.`,
  options: {
    seed: number("which faults, and in which order", 1),
    runs: number("how many runs are followed", 40),
    "at-once": number("at a time", 4),
    without: named("gaps", "takes away, in a copy of the tree, that a gap is noticed, and wants a violation", withouts),
  },
  async run({ seed, runs, "at-once": atOnce, without, json }) {
    await using tree = await openTreeCopy({ edits: without?.edits });
    await using world = await openWorld(tree.directory);
    const { violations, ...counts } = await runResumes(world, { seed, runs, atOnce });
    if (json) console.log(JSON.stringify({ violations, ...counts }));
    else console.error(counts);
    for (const { rule, what } of violations.slice(0, 20)) console.error(`VIOLATION ${rule}: ${what}`);
    console.error(`${counts.resumes} resumes, ${violations.length} violations`);
    const isAsWanted = without === undefined ? violations.length === 0 : violations.length > 0;
    return isAsWanted && counts.resumes > 0;
  },
});
