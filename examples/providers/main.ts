// Starts the three providers and a suite of its own, and lets an agent use all of them: `npx node examples/providers/main.ts`.

import { fileURLToPath } from "node:url";
import { Role, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { openConnection } from "../../cli/connection.ts";
import { printLine, printNote } from "../../cli/printing/print.ts";
import { createRunPrinter } from "../../cli/printing/run-printer.ts";
import { openSuite } from "../../cli/suite/suite.ts";
import { followRun } from "../../cli/watching/run-follower.ts";
import { findPlaces, startProvider } from "./start.ts";

const here = (name: string) => fileURLToPath(new URL(name, import.meta.url));

await using stack = new AsyncDisposableStack();
const places = await findPlaces();
printNote(`TOOLBUS_PROVIDERS=${places.variable}`);
const env = { TOOLBUS_PROVIDERS: places.variable, TOOLBUS_AGENTS: here("agents"), TOOLBUS_SCRIPTS: here("models") };
const suite = stack.use(await openSuite({ directory: ".toolbus/providers", port: 0, env, onProgress: printNote }));
for (const name of ["python", "go", "typescript"] as const) {
  stack.use(await startProvider(name, places, suite));
  printNote(`the ${name} provider is ready`);
}

const connection = openConnection(suite);
const input = [
  {
    item: {
      case: "message" as const,
      value: { role: Role.USER, content: [{ part: { case: "text" as const, value: "three words here" } }] },
    },
  },
];
const { run } = await connection.client(RunService).createRun({ agent: "visitor", input });
const printer = createRunPrinter((text) => void process.stdout.write(text));
const status = await followRun(connection, run?.id ?? "", { printer });
const { run: ended } = await connection.client(RunService).getRun({ runId: run?.id ?? "" });
const isRight = ended?.outputText.includes("25 primes below 100") && ended.outputText.includes("3 words");
printLine(isRight ? "\nall three answered" : "\nsomething is missing");
if (status !== RunState.COMPLETED || !isRight) process.exitCode = 1;
