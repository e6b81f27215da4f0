// Tries the suite as an MCP client by the scenarios of the package @modelcontextprotocol/conformance: for each revision those that it
// requires, and beside them those that it runs without asking for them.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { parse } from "yaml";
import { exceptions } from "./exceptions.ts";
import { openConformanceSuite } from "./suite.ts";

const USAGE = `usage: npm run conformance -- [options]

Runs the suite, and has the official scenarios for MCP clients try it. Says a line a scenario, and how many passed of those that each
revision requires. A scenario passes without a failure and without a warning; one that does not is tried a second time, and says so.

  --only TEXT      scenarios whose name holds it
  --revision DATE  of this revision alone
  --verbose        what the client said of a scenario that failed, too
  --help

Exit code 0: all checks held but those in exceptions.ts, and none of those did.`;

const { values } = parseArgs({
  options: {
    only: { type: "string", default: "" },
    revision: { type: "string" },
    verbose: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});
if (values.help) {
  console.log(USAGE);
  process.exit(0);
}

const CLIENT_MS = 60_000;
/** The package waits for ever for a client that leaves a connection open. */
const MOST_MS = CLIENT_MS + 15_000;

const program = fileURLToPath(import.meta.resolve("@modelcontextprotocol/conformance/dist/index.js"));
const requirements = join(dirname(program), "../requirements");
const driver = fileURLToPath(new URL("client.ts", import.meta.url));

interface Check {
  id: string;
  status: string;
  description: string;
  errorMessage?: string;
}

interface Fault {
  check: string;
  text: string;
}

interface Verdict {
  /** None where the scenario passed. */
  faults: Fault[];
  said: string;
}

await using stack = new AsyncDisposableStack();
const directory = await mkdtemp(join(tmpdir(), "mcp-conformance-"));
stack.defer(() => rm(directory, { recursive: true, force: true }));
const suite = stack.use(await openConformanceSuite(join(directory, "suite")));
const revisions = (await readdir(requirements)).map((file) => file.replace(".yaml", "")).toSorted();
let wrong = 0;
for (const revision of revisions) {
  if (values.revision !== undefined && values.revision !== revision) continue;
  const { required, further } = await scenariosOf(revision);
  console.log(`${revision}:`);
  let passed = 0;
  for (const scenario of required) if (await runRequired(revision, scenario)) passed += 1;
  for (const { scenario, reason } of further) await runFurther(revision, scenario, reason);
  console.log(`${revision}: ${passed} passed of ${required.length}\n`);
}
process.exitCode = wrong === 0 ? 0 : 1;

async function scenariosOf(revision: string) {
  const set = parse(await readFile(join(requirements, `${revision}.yaml`), "utf8")) as {
    client: string[];
    not_scored: { scenario: string; leg: string; reason: string }[];
  };
  const isChosen = (scenario: string) => scenario.includes(values.only);
  return {
    required: set.client.filter(isChosen),
    further: set.not_scored.filter(({ leg, scenario }) => leg === "client" && isChosen(scenario)),
  };
}

/** Whether it passed. An exception that holds is as wrong as a failure that is none. */
async function runRequired(revision: string, scenario: string): Promise<boolean> {
  const excepted = exceptions.filter((one) => one.revision === revision && one.scenario === scenario);
  const isUnexpected = ({ check }: Fault) => !excepted.some((one) => one.check === check);
  let { faults, said } = await run(revision, scenario);
  if (faults.some(isUnexpected)) {
    console.log(`again ${scenario}: ${faults.map(({ check }) => check).join(", ")}`); // some checks are of milliseconds
    ({ faults, said } = await run(revision, scenario));
  }
  const unexpected = faults.filter(isUnexpected);
  const held = excepted.filter(({ check }) => !faults.some((fault) => fault.check === check));
  const word = unexpected.length + held.length > 0 ? "FAIL" : excepted.length > 0 ? "but " : "pass";
  console.log(`${word}  ${scenario}`);
  for (const { check, text } of unexpected) console.log(`      ${check}: ${text}`);
  for (const { check } of held) console.log(`      ${check}: it is an exception, and holds`);
  if (word === "but ") for (const { check, reason } of excepted) console.log(`      ${check}: ${reason}`);
  if (word === "FAIL") wrong += 1;
  if (word === "FAIL" && values.verbose) console.log(said.replaceAll(/^/gm, "      | "));
  return faults.length === 0;
}

async function runFurther(revision: string, scenario: string, reason: string): Promise<void> {
  const { faults } = await run(revision, scenario);
  console.log(`${faults.length === 0 ? "pass" : "none"}  ${scenario} (not required: ${reason})`);
}

async function run(revision: string, scenario: string): Promise<Verdict> {
  const results = await mkdtemp(join(directory, "results-"));
  const of = ["client", "--scenario", scenario, "--spec-version", revision, "--force", "--output-dir", results];
  const command = ["--timeout", `${CLIENT_MS}`, "--command", `"${process.execPath}" "${driver}"`];
  const env = { ...process.env, CONFORMANCE_URL: suite.url, CONFORMANCE_KEY: suite.apiKey ?? "" };
  const child = spawn(process.execPath, [program, ...of, ...command], { env, stdio: "ignore", timeout: MOST_MS });
  const [exitCode] = (await once(child, "exit")) as [number | null];
  const made = await readdir(results, { recursive: true }).catch(() => []);
  const read = async (name: string) => {
    const file = made.find((one) => basename(one) === name);
    return file === undefined ? "" : readFile(join(results, file), "utf8");
  };
  const checks = JSON.parse((await read("checks.json")) || "[]") as Check[];
  const faults = checks
    .filter(({ status }) => status === "FAILURE" || status === "WARNING")
    .map(({ id, errorMessage, description }) => ({ check: id, text: errorMessage ?? description }));
  const said = await read("stderr.txt");
  if (faults.length === 0 && (exitCode !== 0 || checks.length === 0))
    faults.push({ check: "client", text: said.split("\n").slice(-12).join(" | ") });
  return { faults, said };
}
