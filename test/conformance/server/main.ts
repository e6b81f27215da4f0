// Tries the gateway's door for MCP clients by the scenarios of the package @modelcontextprotocol/conformance for servers: those that
// each revision requires, at an agent whose tools, resources and prompts come from a server behind the bridge. One that fails is tried
// a second time, and says so: some wait for a second or less for what a slow machine needs longer for.
//
//   npm run conformance:server
//
// Exit code 0: all checks held but those in exceptions.ts, and none of those did.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { openConnection } from "../../../cli/connection.ts";
import { openSuite } from "../../../cli/suite/suite.ts";
import { ASKING_TOOLS, openAskingScenarios } from "./asking-server.ts";
import { serverExceptions } from "./exceptions.ts";

const SCENARIO_MS = 10_000;
const AGENT = "conformance";
const program = fileURLToPath(import.meta.resolve("@modelcontextprotocol/conformance/dist/index.js"));
const requirements = join(dirname(program), "../requirements");
const behind = fileURLToPath(new URL("scenario-server.ts", import.meta.url));
/** The scenarios call tools by these names. */
const TOOLS = [
  ...["test_simple_text", "test_image_content", "test_audio_content", "test_embedded_resource"],
  ...["test_multiple_content_types", "test_error_handling", "test_tool_with_progress"],
  ...["test_tool_with_logging", "test_trigger_tool_change"],
  ...["test_elicitation", "test_elicitation_sep1034_defaults", "test_elicitation_sep1330_enums"],
];

interface Check {
  id: string;
  status: string;
  description: string;
  errorMessage?: string;
}

await using stack = new AsyncDisposableStack();
const directory = await mkdtemp(join(tmpdir(), "mcp-conformance-server-"));
stack.defer(() => rm(directory, { recursive: true, force: true }));
const suite = stack.use(
  // the package has no key to send
  await openSuite({ directory: join(directory, "suite"), port: 0, restart: false, auth: "none" }),
);
const asking = stack.use(await openAskingScenarios());
const aliases = Object.fromEntries([
  ...TOOLS.map((tool) => [tool, `@behind/${tool}`]),
  ...ASKING_TOOLS.map((tool) => [tool, `@asking/${tool}`]),
]);
await openConnection(suite)
  .client(AgentService)
  .applyAgent({
    agent: {
      name: AGENT,
      model: { provider: "scripted", model: "none.json" },
      tools: { use: ["@behind/*", "@asking/*"], aliases },
      sources: [
        { name: "behind", provider: "mcp", config: { command: process.execPath, args: [behind] } },
        { name: "asking", provider: "mcp", config: { url: asking.url } },
      ],
    },
  });
let wrong = 0;
for (const file of (await readdir(requirements)).toSorted()) await tryRevision(file.replace(".yaml", ""));
process.exitCode = wrong === 0 ? 0 : 1;

async function tryRevision(revision: string): Promise<void> {
  const { server: required } = parse(await readFile(join(requirements, `${revision}.yaml`), "utf8")) as {
    server: string[];
  };
  const excepted = serverExceptions.filter((one) => one.revision === revision).flatMap(({ checks }) => checks);
  const failed = new Set<string>();
  let passed = 0;
  for (const scenario of required) {
    const isUnexpected = ({ id }: Check) => !excepted.includes(id);
    let faults = await run(revision, scenario);
    if (faults.some(isUnexpected)) {
      console.log(`again ${scenario}: ${faults.map(({ id }) => id).join(", ")}`);
      faults = await run(revision, scenario);
    }
    if (faults.length === 0) passed += 1;
    for (const { id } of faults) failed.add(id);
    const unexpected = faults.filter(isUnexpected);
    wrong += unexpected.length;
    console.log(`${unexpected.length > 0 ? "FAIL" : faults.length > 0 ? "but " : "pass"}  ${scenario}`);
    for (const { id, errorMessage, description } of unexpected)
      console.log(`      ${id}: ${errorMessage ?? description}`);
  }
  for (const id of excepted.filter((one) => !failed.has(one))) {
    wrong += 1;
    console.log(`FAIL  ${id} is an exception, and holds`);
  }
  console.log(`${revision}: ${passed} passed of ${required.length}, ${excepted.length} checks are exceptions\n`);
}

async function run(revision: string, scenario: string): Promise<Check[]> {
  const results = await mkdtemp(join(directory, "results-"));
  const at = [
    "server",
    "--url",
    `${suite.url}/mcp/${AGENT}`,
    "--scenario",
    scenario,
    "--spec-version",
    revision,
    "--force",
  ];
  const command = [program, ...at, "--timeout", `${SCENARIO_MS}`, "--output-dir", results];
  const child = spawn(process.execPath, command, { stdio: "ignore", timeout: 3 * SCENARIO_MS });
  await once(child, "exit");
  const made = await readdir(results, { recursive: true }).catch(() => []);
  const file = made.find((name) => name.endsWith("checks.json"));
  if (file === undefined) return [{ id: scenario, status: "FAILURE", description: "the package made no checks" }];
  const checks = JSON.parse(await readFile(join(results, file), "utf8")) as Check[];
  return checks.filter(({ status }) => status === "FAILURE" || status === "WARNING");
}
