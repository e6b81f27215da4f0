import { parseArgs } from "node:util";
import { measureBus } from "./bus.ts";
import { measureLoop } from "./loop.ts";
import type { BenchResult } from "./result.ts";

const benches: Record<string, () => AsyncIterable<BenchResult>> = { bus: measureBus, loop: measureLoop };

const USAGE = `usage: npm run bench -- <${Object.keys(benches).join("|")}> [--json]`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { json: { type: "boolean", default: false } },
});
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
