import { type Command, InvalidArgumentError } from "commander";
import { type Run, type RunState, ToolChoiceMode } from "#gen/toolbus/run/v1/run_pb.ts";
import { CreateRunResponseSchema, RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { armOfUrl } from "#runtime/agent-file/server-spelling.ts";
import { type Connection, globalOptionsOf, openConnection } from "../../connection.ts";
import { exitCodes, UsageFault } from "../../faults/fault.ts";
import { invocation } from "../../faults/invocation.ts";
import { printMessage, printNote } from "../../printing/print.ts";
import { goOnUnread } from "../../printing/terminal.ts";
import { readFunctionsFile } from "../../requests/functions-file.ts";
import { openInterruption } from "../../requests/interruption.ts";
import { wholeNumber } from "../../requests/numbers.ts";
import { closeUnlessAwaited } from "../../requests/session/close-session.ts";
import { inputOf, startOnce } from "../../requests/start-once.ts";
import { showAnswered } from "../../watching/show-answered.ts";
import { showToEnd } from "../../watching/show-to-end.ts";
import { openWaitingCalls, textOfWaiting } from "../../watching/waiting-calls.ts";

interface Options {
  session?: string;
  maxTurns?: number;
  allow?: string[];
  stopAt?: string[];
  toolChoice?: string;
  functions?: string;
  mcpServer: { name: string; url: string }[];
  mcpHeader: { server: string; name: string; value: string }[];
  detach?: boolean;
  keep?: boolean;
  key?: string;
}

export function addRunCommand(program: Command): void {
  program
    .command("run")
    .description("Run an agent and show what happens until it ends")
    .argument("<agent>", "the agent's name")
    .argument("<input...>", "what to say to it")
    .option("-s, --session <id>", "go on in this session instead of opening one")
    .option("--max-turns <n>", "model responses at most", wholeNumber({ min: 1 }))
    .option("--allow <tool...>", "narrow what may be called to these tools")
    .option("--stop-at <tool...>", "end it with the answer of one of these tools")
    .option("--tool-choice <choice>", "auto, required, none, or a tool that the first turn must call")
    .option("--functions <file>", "let it call these functions; their outputs are read here, a line of JSON each")
    .option(
      "--mcp-server <name=url>",
      "let it use this MCP server in this run alone; may be given again",
      serverFrom,
      [],
    )
    .option(
      "--mcp-header <name=header:value>",
      "send this HTTP header to the MCP server of that name; may be given again",
      headerFrom,
      [],
    )
    .option("-d, --detach", "only start it and print it")
    .option("--keep", "leave the session open that it opens, as --detach does; otherwise it is closed with the run")
    .option("--key <key>", "start it once for this key: who asks again with it gets the same run")
    .action(run);
}

async function run(agent: string, words: string[], options: Options, command: Command): Promise<void> {
  const global = globalOptionsOf(command);
  const connection = openConnection(global);
  const functionTools = options.functions === undefined ? [] : await readFunctionsFile(options.functions);
  const request = {
    agent,
    sessionId: options.session ?? "",
    input: inputOf(words.join(" ")),
    options: {
      ...(options.allow && { allowedTools: { names: options.allow } }),
      functionTools,
      mcpServers: serversFrom(options),
      limits: {
        ...(options.maxTurns !== undefined && { maxTurns: options.maxTurns }),
        ...(options.stopAt && { stopAtTools: options.stopAt }),
      },
      ...(options.toolChoice === undefined ? {} : { toolChoice: toolChoiceFrom(options.toolChoice) }),
    },
  };
  const response = await startOnce(options.key, (idempotencyKey) =>
    connection.client(RunService).createRun({ ...request, idempotencyKey }),
  );
  const started = response.run;
  if (started === undefined) throw new Error("the suite accepted the run without telling its id");
  if (options.detach) return printMessage(CreateRunResponseSchema, response);
  printNote(`run ${started.id} in session ${started.sessionId}`);
  const isOwn = options.session === undefined && !options.keep;
  if (isOwn) goOnUnread();
  const state = await showRun(connection, started, { json: global.json, isAsked: functionTools.length > 0 });
  if (isOwn && state !== undefined) await closeUnlessAwaited(connection, started.sessionId, state);
}

/** Shows it until it ends, and tells how; undefined when Ctrl-C came first, which ends the command and not the run. */
async function showRun(
  connection: Connection,
  run: Run,
  { json, isAsked }: { json: boolean | undefined; isAsked: boolean },
): Promise<RunState | undefined> {
  using interruption = openInterruption();
  const { signal } = interruption;
  using waiting = openWaitingCalls(connection, run, (call) => printNote(textOfWaiting(call)));
  try {
    const show = isAsked ? showAnswered : showToEnd;
    return await show(connection, run.id, { json, signal, onUpdate: waiting.see });
  } catch (error) {
    if (!signal.aborted) throw error;
    printNote(
      `the run goes on: ${invocation} watch run ${run.id} shows it, ${invocation} runs cancel ${run.id} ends it`,
    );
    process.exitCode = exitCodes.interrupted;
    return undefined;
  }
}

const toolChoiceModes = new Map([
  ["auto", ToolChoiceMode.AUTO],
  ["required", ToolChoiceMode.REQUIRED],
  ["none", ToolChoiceMode.NONE],
]);

function toolChoiceFrom(text: string) {
  if (text === "") throw new UsageFault("--tool-choice needs a value");
  const mode = toolChoiceModes.get(text);
  return {
    choice: mode === undefined ? { case: "forcedTool" as const, value: text } : { case: "mode" as const, value: mode },
  };
}

function serverFrom(text: string, others: Options["mcpServer"]): Options["mcpServer"] {
  const [, name, url] = /^([a-zA-Z0-9_.-]{1,64})=(.+)$/.exec(text) ?? [];
  if (name === undefined || url === undefined) throw new InvalidArgumentError("expected name=url");
  return [...others, { name, url }];
}

function headerFrom(text: string, others: Options["mcpHeader"]): Options["mcpHeader"] {
  const [, server, name, value] = /^([a-zA-Z0-9_.-]{1,64})=([^:]+):\s*(.*)$/.exec(text) ?? [];
  if (server === undefined || name === undefined || value === undefined)
    throw new InvalidArgumentError("expected name=header:value");
  return [...others, { server, name, value }];
}

function transportTo(url: string, headers: Record<string, string>) {
  return armOfUrl(url) === "http"
    ? { case: "http" as const, value: { url, headers } }
    : { case: "custom" as const, value: { url, headers } };
}

function serversFrom({ mcpServer: servers, mcpHeader: headers }: Options) {
  const lost = headers.find(({ server }) => !servers.some(({ name }) => name === server));
  if (lost !== undefined)
    throw new UsageFault(`--mcp-header names the server "${lost.server}", which no --mcp-server gives`);
  return servers.map(({ name, url }) => {
    const own = headers.filter(({ server }) => server === name);
    const sent = Object.fromEntries(own.map((header) => [header.name, header.value]));
    return { name, transport: transportTo(url, sent) };
  });
}
