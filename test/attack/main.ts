import { parseArgs, styleText } from "node:util";
import { attacks, shortAttacks } from "./attacks/all.ts";
import { runCampaign, type Verdict } from "./campaign.ts";

const USAGE = `usage: npm run attack -- [options]

Attacks a suite of processes with the keys of two principals, without a key, as a third party on the bus and by hostile tools of each
kind, while another principal calls. Says a line an attack: what it reached, and what the other principal paid.

  --only TEXT   attacks whose requirement or name holds it; may be given more than once
  --short       each attack once and small, in less than a minute; what the other paid is not judged, only what it lost
  --seed N      what is random follows from it (1)
  --json        a line of JSON an attack
  --help

Exit code 0: nothing was reached, no call of the other principal was lost, and its p99 is at most three times what it was before.

attacks:
${attacks.map(({ name, requirement }) => `  ${requirement}  ${name}`).join("\n")}`;

const { values } = parseArgs({
  options: {
    only: { type: "string", multiple: true },
    short: { type: "boolean", default: false },
    seed: { type: "string", default: "1" },
    json: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

const { only, short: isShort, json: isJson } = values;
const chosen = (isShort ? shortAttacks : attacks).filter(
  ({ name, requirement }) => only === undefined || only.some((part) => `${requirement} ${name}`.includes(part)),
);
if (values.help || chosen.length === 0) {
  console.log(USAGE);
  process.exit(values.help ? 0 : 2);
}

const show = (verdict: Verdict) => console.log(isJson ? JSON.stringify(verdict) : linesOf(verdict).join("\n"));
const verdicts = await runCampaign({ attacks: chosen, isShort, seed: Number(values.seed), onVerdict: show });
const fallen = verdicts.filter(({ reached }) => reached.length > 0);
if (!isJson) console.log(`${verdicts.length - fallen.length} held, ${fallen.length} did not`);
process.exit(fallen.length === 0 ? 0 : 1);

function linesOf({ attack, requirement, tries, reached, paid, tookMs }: Verdict): string[] {
  const mark = reached.length === 0 ? styleText("green", "held") : styleText("red", "FELL");
  const times = [paid.p99BeforeMs, paid.p99Ms].map((ms) => (Number.isNaN(ms) ? "–" : ms.toFixed(1)));
  const told = `${tries} tries in ${(tookMs / 1_000).toFixed(1)} s; another's p99 ${times[0]} → ${times[1]} ms, ${paid.lost.length} of ${paid.calls} calls lost`;
  const what = reached.length === 0 ? ["nothing"] : reached.slice(0, 10);
  return [`${mark}  ${requirement}  ${attack}`, `      ${told}`, ...what.map((line) => `      reached: ${line}`)];
}
