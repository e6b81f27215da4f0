import { parseArgs } from "node:util";
import { measureBus } from "./bus.ts";
import { measureLoop } from "./loop.ts";
import { measureParked } from "./parked.ts";
import { measureRecovery } from "./recovery.ts";
import type { BenchResult } from "./result.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: "boolean", default: false },
    /** How many runs `parked` parks. */
    runs: { type: "string", default: "100000" },
  },
});

const onProgress = (message: string) => console.error(message);
const benches: Record<string, () => AsyncIterable<BenchResult>> = {
  bus: measureBus,
  loop: measureLoop,
  recovery: measureRecovery,
  parked: () => measureParked({ runs: Number(values.runs), onProgress }),
};

const USAGE = `usage: npm run bench -- <${Object.keys(benches).join("|")}> [--json]`;

const measure = benches[positionals[0] ?? ""];
if (!measure) {
  console.error(USAGE);
  process.exit(2);
}

const rows: BenchResult[] = [];
for await (const result of measure()) {
  if (values.json) console.log(JSON.stringify(result));
  else rows.push(result);
}
if (!values.json) console.table(rows);
