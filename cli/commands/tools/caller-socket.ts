import type { Command } from "commander";
import type { CallerDeclaration } from "#gen/toolbus/caller/v1/caller_pb.ts";
import { CallerService } from "#gen/toolbus/caller/v1/caller_service_pb.ts";
import { Reason } from "#gen/toolbus/error/v1/error_pb.ts";
import type { CallToolResult } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { isUnavailable } from "#runtime/failure/connect.ts";
import { resumed } from "#runtime/rpc/watching/resumed.ts";
import { type Connection, globalOptionsOf, openConnection } from "../../connection.ts";
import { printJson, printLine } from "../../printing/terminal.ts";
import { openInterruption } from "../../requests/interruption.ts";
import { resultOfToolCall } from "../../requests/tool-call.ts";
import { type CallerToolsConfig, type CallFrame, codes, FrameFault, prefixedName } from "./socket/frames.ts";
import { openSocketServer } from "./socket/socket-server.ts";

export function addCallerSocketCommand(program: Command): void {
  program
    .command("caller-socket")
    .description("Offer the tools of a session's caller on a unix socket, until Ctrl-C")
    .argument("<session>")
    .requiredOption("-s, --socket <path>", "where to listen; only this user may connect")
    .action(serveSocket);
}

async function serveSocket(sessionId: string, { socket }: { socket: string }, command: Command): Promise<void> {
  const global = globalOptionsOf(command);
  const connection = openConnection(global);
  using interruption = openInterruption();
  const { signal } = interruption;
  const caller = connection.client(CallerService);
  let declaration = (await caller.getDeclaration({ sessionId })).declaration;
  await using server = await openSocketServer({
    path: socket,
    call: (frame, leaving) => callTool(connection, { sessionId, declaration, frame }, leaving),
  });
  server.configure(configFrom(declaration));
  if (global.json) printJson({ kind: "ready", socket });
  else printLine(`The tools of the caller of ${sessionId} are on ${socket}. Ctrl-C ends it.`);
  const open = () => caller.watchDeclaration({ sessionId }, { signal });
  const stands = { patienceMs: Number.POSITIVE_INFINITY, signal };
  try {
    for await (const { declaration: declared } of resumed({ open, ...stands })) {
      declaration = declared;
      server.configure(configFrom(declared));
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

interface SocketCall {
  readonly sessionId: string;
  readonly declaration: CallerDeclaration | undefined;
  readonly frame: CallFrame;
}

/** Nothing but what the caller declares can be called, whatever else has such a name. */
async function callTool(connection: Connection, call: SocketCall, signal: AbortSignal): Promise<string> {
  const { sessionId, declaration, frame } = call;
  if (!declaration?.tools.some(({ name }) => name === frame.tool)) {
    throw new FrameFault(codes.invalidParams, `the caller declares no tool ${JSON.stringify(frame.tool)}`);
  }
  const name = prefixedName(declaration.callerId, frame.tool);
  let result: CallToolResult;
  try {
    result = await resultOfToolCall(connection, { sessionId, name, argumentsJson: frame.argumentsJson }, signal);
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    throw new FrameFault(codes.connectionLost, `Connection lost: ${error.rawMessage}`);
  }
  if (!result.isError) return result.outputJson;
  throw new FrameFault(codeOf(result.reason), textOfError(result.outputJson));
}

function codeOf(reason: Reason): number {
  if (reason === Reason.DEADLINE_EXCEEDED) return codes.timeout;
  return reason === Reason.CALLER_NOT_ATTACHED ? codes.connectionLost : codes.toolError;
}

/** As KIND-4 has it. */
function textOfError(outputJson: string): string {
  return (JSON.parse(outputJson) as { error: string }).error;
}

function configFrom(declaration: CallerDeclaration | undefined): CallerToolsConfig {
  const tools = (declaration?.tools ?? []).map(({ name, description, inputSchemaJson }) => ({
    name,
    ...(description && { description }),
    inputSchema: JSON.parse(inputSchemaJson || '{"type":"object"}') as Record<string, unknown>,
  }));
  return { caller_id: declaration?.callerId ?? "", tools };
}
