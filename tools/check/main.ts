import { styleText } from "node:util";
import { projectRoot } from "../gen/command.ts";
import { type Check, checks } from "./checks.ts";
import type { Findings } from "./findings.ts";

interface Verdict extends Findings {
  readonly check: Check;
  readonly seconds: string;
}

const longestList = 40;

async function judge(check: Check): Promise<Verdict> {
  const startMs = performance.now();
  const found = await check
    .run(projectRoot)
    .catch((error: unknown) => (error instanceof Error ? error.message : String(error)).split("\n"));
  const findings = "figures" in found ? found : { faults: found, figures: [] };
  return { check, ...findings, seconds: ((performance.now() - startMs) / 1000).toFixed(1) };
}

function report({ check, faults, figures, seconds }: Verdict): void {
  const mark = faults.length === 0 ? styleText("green", "pass") : styleText("red", "FAIL");
  console.log(`${mark}  ${check.name}  ${styleText("dim", `${seconds} s`)}`);
  for (const figure of figures) console.log(`      ${figure}`);
  for (const fault of faults.slice(0, longestList)) console.log(`      ${fault}`);
  if (faults.length > longestList) console.log(`      … and ${faults.length - longestList} lines more`);
  if (faults.length > 0) console.log(`      to mend: ${check.mend}`);
}

const asked = process.argv.slice(2);
const unknown = asked.filter((key) => !checks.some((check) => check.key === key));
if (unknown.length > 0) {
  console.error(`there is no check ${unknown.join(", ")}; there are ${checks.map(({ key }) => key).join(", ")}`);
  process.exit(2);
}

const verdicts = await Promise.all(
  checks
    .filter(({ key }) => asked.length === 0 || asked.includes(key))
    .map(async (check) => {
      const verdict = await judge(check);
      report(verdict);
      return verdict;
    }),
);
const failed = verdicts.filter((verdict) => verdict.faults.length > 0).length;
console.log(`${verdicts.length - failed} checks passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
