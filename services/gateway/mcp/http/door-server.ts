import {
  type JSONRPCRequest,
  ProtocolError,
  type Result,
  Server,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { z } from "zod";
import { JSON_RPC } from "./refusals.ts";

const WHOLE_LISTS = new Set(["tools/list", "prompts/list", "resources/list", "resources/templates/list"]);

type Handler = (request: JSONRPCRequest, context: ServerContext) => Promise<Result>;

/**
 * A server of the SDK that names the fields which are wrong with a client's parameters. The SDK's own (2.4.0) hands on what zod says, a
 * JSON text, and for most methods as a fault of the server.
 */
export class DoorServer extends Server {
  protected override _wrapHandler(method: string, handler: Handler): Handler {
    const wrapped = super._wrapHandler(method, handler);
    return async (request, context) => {
      if (WHOLE_LISTS.has(method) && request.params?.cursor !== undefined)
        throw new ProtocolError(
          JSON_RPC.invalidParams,
          `${method}: params.cursor: the list is whole, and has no other page`,
        );
      try {
        return await wrapped(request, context);
      } catch (error) {
        const faults = isOfSdk(error) ? faultsIn(error.message) : undefined;
        if (faults === undefined) throw error;
        throw new ProtocolError(JSON_RPC.invalidParams, `${method}: ${faults}`);
      }
    };
  }
}

const issuesForm = z
  .array(z.object({ path: z.array(z.union([z.string(), z.number()])), message: z.string() }))
  .nonempty();

/** What handlers throw is a `ProtocolError` of theirs. */
function isOfSdk(error: unknown): error is Error {
  return error instanceof ProtocolError
    ? error.message.startsWith("Invalid tools/call request: ")
    : error instanceof Error;
}

/** Of a message that has faults without number, the first are told. */
const MOST_TOLD = 10;

/** The fields of which zod says something, if it was zod. */
function faultsIn(message: string): string | undefined {
  const [text] = /\[\s*\{.*\}\s*\]$/s.exec(message) ?? [];
  const issues = text === undefined ? undefined : issuesForm.safeParse(parsed(text)).data;
  return issues
    ?.slice(0, MOST_TOLD)
    .map(({ path, message }) => `${path.join(".")}: ${message}`)
    .join("; ");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
