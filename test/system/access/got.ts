// What somebody gets who calls a method.

import {
  create,
  type DescMethod,
  type DescMethodStreaming,
  type DescMethodUnary,
  toJsonString,
} from "@bufbuild/protobuf";
import type { ContextValues, Transport } from "@connectrpc/connect";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { nameOf, type Request } from "./attempts.ts";
import { SECRET } from "./world.ts";

/** Refusals that say who may; every other failure is the method's own, and so shows that the asker was let in. */
const refusals = new Set([
  "CREDENTIALS_INVALID",
  "PRINCIPAL_NOT_OWNER",
  "PRINCIPAL_NOT_OPERATOR",
  "CALLER_NOT_SERVICE",
  "CALL_KEY_LIMITED",
  "CALL_NOT_TAKEN",
  "DELIVERY_NOT_FOUND",
]);

interface Asking {
  readonly request: Request;
  readonly headers?: Record<string, string>;
  /** Says who asks, past the gateway. */
  readonly contextValues?: ContextValues;
  /** Whether the asker may read what only operators may. */
  readonly isPrivileged?: boolean;
  /** How long a stream may have nothing to say. */
  readonly silenceMs?: number;
}

/** `yes`, `part`, `LEAKS`, or the reason of the refusal. */
export async function gotBy(method: DescMethod, through: Transport, asking: Asking): Promise<string> {
  try {
    const text = await answerOf(method, through, asking);
    if (!asking.isPrivileged && text.includes(SECRET)) return "LEAKS";
    return /"redacted":true/.test(text) ? "part" : "yes";
  } catch (error) {
    const { reason, message } = failureFromConnectError(error);
    if (refusals.has(reason)) return reason;
    if (["INVALID_REQUEST", "REQUEST_MALFORMED", "INTERNAL"].includes(reason))
      throw new Error(`${nameOf(method)}: ${message}`);
    return "yes";
  }
}

/** The answer, or the first message of a stream; empty for one that has nothing to say for a while. */
export async function answerOf(method: DescMethod, transport: Transport, asking: Asking): Promise<string> {
  const { headers, contextValues, silenceMs = 3_000 } = asking;
  const request = create(method.input, asking.request);
  if (method.methodKind === "unary") {
    const { message } = await transport.unary(
      method as DescMethodUnary,
      undefined,
      20_000,
      headers,
      request,
      contextValues,
    );
    return toJsonString(method.output, message);
  }
  const leaving = new AbortController();
  const isSilent = Symbol("silent");
  const reading = (async () => {
    const asked = (async function* () {
      yield request;
    })();
    const streaming = method as DescMethodStreaming;
    const { message } = await transport.stream(streaming, leaving.signal, undefined, headers, asked, contextValues);
    for await (const one of message) return toJsonString(method.output, one);
    return "";
  })();
  reading.catch(() => {}); // left below
  const silence = new Promise<typeof isSilent>((resolve) => setTimeout(resolve, silenceMs, isSilent));
  const first = await Promise.race([reading, silence]);
  leaving.abort();
  return first === isSilent ? "" : first;
}
