import { ConnectError } from "@connectrpc/connect";
import {
  type Implementation,
  type JSONRPCRequest,
  ProtocolError,
  type Result,
  Server,
  type ServerContext,
  type ServerOptions,
} from "@modelcontextprotocol/server";
import { z } from "zod";
import { Failure } from "#runtime/failure/failure.ts";
import { jsonFrom } from "#runtime/schema/json-object.ts";
import { JSON_RPC, type OnFault, rpcFailureFrom, tellFault } from "./refusals.ts";

const WHOLE_LISTS = new Set(["tools/list", "prompts/list", "resources/list", "resources/templates/list"]);

type Handler = (request: JSONRPCRequest, context: ServerContext) => Promise<Result>;

/**
 * A server of the SDK that tells a client what its handlers throw as all doors do, and names the fields which are wrong with the client's
 * parameters. The SDK's own (2.4.0) hands on what zod says, a JSON text, and for most methods as a fault of the server.
 */
export class DoorServer extends Server {
  readonly #onFault: OnFault;

  constructor(onFault: OnFault, info: Implementation, options: ServerOptions) {
    super(info, options);
    this.#onFault = onFault;
  }

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
        if (faults !== undefined) throw new ProtocolError(JSON_RPC.invalidParams, `${method}: ${faults}`);
        if (error instanceof ProtocolError) throw error;
        tellFault(error, this.#onFault);
        const { code, message, data } = rpcFailureFrom(error);
        throw new ProtocolError(code, message, data);
      }
    };
  }
}

const issuesForm = z
  .array(z.object({ path: z.array(z.union([z.string(), z.number()])), message: z.string() }))
  .nonempty();

/** Whether it may be the SDK's word on parameters: handlers refuse by errors of their own. */
function isOfSdk(error: unknown): error is Error {
  if (error instanceof ProtocolError) return error.message.startsWith("Invalid tools/call request: ");
  return error instanceof Error && !(error instanceof ConnectError || error instanceof Failure);
}

/** Of a message that has faults without number, the first are told. */
const MOST_TOLD = 10;

/** The fields of which zod says something, if it was zod. */
function faultsIn(message: string): string | undefined {
  const [text] = /\[\s*\{.*\}\s*\]$/s.exec(message) ?? [];
  const issues = text === undefined ? undefined : issuesForm.safeParse(jsonFrom(text)).data;
  return issues
    ?.slice(0, MOST_TOLD)
    .map(({ path, message }) => `${path.join(".")}: ${message}`)
    .join("; ");
}
