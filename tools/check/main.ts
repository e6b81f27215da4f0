import { styleText } from "node:util";
import { projectRoot } from "../gen/command.ts";
import { type Check, checks } from "./checks.ts";

interface Verdict {
  readonly check: Check;
  readonly faults: readonly string[];
  readonly seconds: string;
}

const longestList = 40;

async function judge(check: Check): Promise<Verdict> {
  const startMs = performance.now();
  const faults = await check
    .run(projectRoot)
    .catch((error: unknown) => (error instanceof Error ? error.message : String(error)).split("\n"));
  return { check, faults, seconds: ((performance.now() - startMs) / 1000).toFixed(1) };
}

function report({ check, faults, seconds }: Verdict): void {
  const mark = faults.length === 0 ? styleText("green", "pass") : styleText("red", "FAIL");
  console.log(`${mark}  ${check.name}  ${styleText("dim", `${seconds} s`)}`);
  for (const fault of faults.slice(0, longestList)) console.log(`      ${fault}`);
  if (faults.length > longestList) console.log(`      … and ${faults.length - longestList} lines more`);
  if (faults.length > 0) console.log(`      to mend: ${check.mend}`);
}

const verdicts = await Promise.all(
  checks.map(async (check) => {
    const verdict = await judge(check);
    report(verdict);
    return verdict;
  }),
);
const failed = verdicts.filter((verdict) => verdict.faults.length > 0).length;
console.log(`${verdicts.length - failed} checks passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
