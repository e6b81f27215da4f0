import { Client, type Request, type RequestOptions } from "@modelcontextprotocol/client";
import { VERSION } from "#runtime/config/version.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { comesWithin } from "#runtime/time/comes-within.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import { refusalIn } from "../../servers/login-needed.ts";
import { type StartTime, textOfLateStart, withWayOut } from "../../servers/start-time.ts";
import { sse } from "../../transport/loaded-late.ts";
import type { OpenTransport } from "../../transport/module.ts";
import { connectByEra, type KnownEra } from "../era/connect-by-era.ts";
import { textOfError } from "../outcome/outcome.ts";
import { showAnswers } from "../outcome/shown-answers.ts";
import { anyObject } from "../tasks/tasks.ts";
import { capabilitiesOf, NO_TIMEOUT_MS } from "./client-options.ts";
import { createLink, type Link, type LinkOptions, observeErrors } from "./link.ts";
import { boundOwnAnswers } from "./own-answers.ts";

const MODERN_REVISION = "2026-07-28";

/** Gives results of calls as `showAnswers` made them: the SDK tries its schema on nothing at each call, and words the fault. */
class LinkClient extends Client {
  override request(asked: Request, schema?: unknown, options?: RequestOptions): Promise<never> {
    const isKnown = asked.method === "tools/call" && options === undefined;
    const [given, more] = isKnown ? [anyObject, schema as RequestOptions] : [schema as typeof anyObject, options];
    return super.request(asked, given, more) as Promise<never>;
  }
}

/** Opens the transport and initialises. */
export function openLink(
  options: LinkOptions,
  start: StartTime,
  limit: AbortSignal,
  closing: Promise<unknown>[],
): Promise<Link> {
  const attempt = (era: KnownEra | undefined, signal: AbortSignal) =>
    openOnce(options, { era, signal }, start, closing);
  const isHttp = options.server.transport.case === "http";
  return connectByEra(attempt, { known: options.era, isHttp, start }, limit);
}

async function openOnce(
  options: LinkOptions,
  connect: { era: KnownEra | undefined; signal: AbortSignal },
  start: StartTime,
  closing: Promise<unknown>[],
): Promise<Link> {
  const { server, context } = options;
  const { era } = connect;
  const module = era === "sse" ? sse : options.module;
  const opened = await module.open(server, context).catch((error: unknown) => {
    throw withWayOut(error, start);
  });
  const { transport } = opened;
  showAnswers(transport);
  boundOwnAnswers(transport);
  const close = () =>
    transport.close().catch((error) => context.logger.warn({ err: error }, `closing ${server.name} failed`));
  const client = new LinkClient(
    { name: "toolbus", version: VERSION },
    {
      capabilities: { ...capabilitiesOf(server), elicitation: { form: {}, url: {} } },
      inputRequired: { autoFulfill: false },
      versionNegotiation: {
        mode: era === "modern" ? { pin: MODERN_REVISION } : "auto",
        probe: { timeoutMs: NO_TIMEOUT_MS }, // only an answer decides; the time for starting is kept here
      },
    },
  );
  const lastError = observeErrors(client, options);
  try {
    const connecting = client.connect(transport, {
      timeout: NO_TIMEOUT_MS,
      signal: connect.signal,
      ...((era === "legacy" || era === "sse") && { prior: { kind: "legacy" as const } }),
    });
    connecting.catch(() => {}); // when the time is up first, its own end has nobody who waits for it
    await unlessAborted(connecting, connect.signal);
  } catch (error) {
    const isTimeUp = connect.signal.reason instanceof Error && connect.signal.reason.name === "TimeoutError";
    closing.push(close());
    const text = isTimeUp ? textOfLateStart(start) : (lastError() ?? refusalIn(error)?.message ?? textOfError(error));
    const message = [text, await lastWords(opened, closing, isTimeUp)].filter(Boolean).join("; ");
    throw new Failure("unavailable", message, { reason: "MCP_SERVER_UNAVAILABLE", cause: error });
  }
  return createLink(options, opened, { client, isSse: era === "sse" }, close);
}

/** A process that has failed says why as it goes; one that hangs is not waited for. */
async function lastWords(opened: OpenTransport, closing: Promise<unknown>[], isTimeUp: boolean): Promise<string> {
  if (!isTimeUp && opened.describeEnd) await comesWithin(500, Promise.all(closing));
  return opened.describeEnd?.() ?? "";
}
