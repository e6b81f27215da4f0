import type { McpServer } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { getOrInsertComputed } from "#runtime/collections/get-or-insert-computed.ts";
import { BoundedMap } from "#runtime/collections/maps/bounded-map.ts";
import { RoundRobinQueue } from "#runtime/collections/turns/round-robin-queue.ts";
import { partsOfTransport } from "#runtime/config/server-transport.ts";
import { Failure, messageFromUnknown, refuse } from "#runtime/failure/failure.ts";
import type { AddressGuard } from "#runtime/http/address-guard.ts";
import type { InSpan } from "#runtime/telemetry/in-span.ts";
import { comesWithin } from "#runtime/time/comes-within.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { timeoutSignal } from "#runtime/time/timeout-signal.ts";
import { startTimer } from "#runtime/time/timer.ts";
import { Eras } from "../link/era/eras.ts";
import type { OpenedLink, OpenLink } from "../link/link-keeper.ts";
import type { Link } from "../link/opening/link.ts";
import { withSecrets } from "../servers/secrets.ts";
import { installerOf, isProcess, programOf, type StartTime, textOfLateStart } from "../servers/start-time.ts";
import type { TransportContext } from "../transport/module.ts";
import type { FindTransport } from "../transport/registry.ts";
import type { OpenedConnection } from "./connections.ts";
import type { Starts } from "./starts.ts";

export interface OpenerOptions
  extends Pick<TransportContext, "environment" | "confinement" | "maxMessageBytes" | "logger" | "redact"> {
  findTransport: FindTransport;
  secrets: ReadonlyMap<string, string>;
  /** Servers that runs bring are reached only where it allows. */
  runGuard: AddressGuard;
  starts: Starts;
  inSpan: InSpan;
}

/**
 * SEC-6: processes that start at once, of all, for one principal, and of one program for it: of a hundred on two cores, none is there in
 * its time. A program that hangs keeps its own next starts waiting, and many that do those of their principal: by one start of each.
 */
const MOST_STARTING = 32;
const MOST_STARTING_FOR_ONE = 28;
const MOST_STARTING_OF_ONE = 8;
const TURN_MS = 2_000;
/** Who waits for a turn so long is told. */
const TELLING_MS = 100;

const newTurns = () => new RoundRobinQueue(MOST_STARTING_FOR_ONE, MOST_STARTING_OF_ONE);

/** How a connection opens its links: secrets resolved, transport chosen, initialised and listed within one time. */
export function createOpener(options: OpenerOptions) {
  const { environment, confinement, maxMessageBytes, logger, redact, secrets, runGuard, starts } = options;
  const eras = new Eras();
  const turns = new RoundRobinQueue(MOST_STARTING, MOST_STARTING_FOR_ONE);
  const turnsByPrincipal = new BoundedMap<string, RoundRobinQueue>(10_000);
  const context = { environment, confinement, maxMessageBytes, logger, redact };
  return (asked: OpenedConnection): OpenLink =>
    installerOf(asked.server) === undefined ? opener(asked) : starts.opener(asked.server, opener(asked));

  /** Whoever waits for a turn has not begun: the time of a start is not over meanwhile. */
  async function inTurn(asked: OpenedConnection, open: OpenLink, ...given: Parameters<OpenLink>): Promise<OpenedLink> {
    const [events, , signal] = given;
    let opened: Promise<OpenedLink> | undefined;
    const begin = async () => {
      stopTelling();
      if (events.isUnclaimed?.()) return;
      opened = open(...given);
      await comesWithin(TURN_MS, opened).catch(() => {}); // it is told below
    };
    const stopTelling = startTimer(TELLING_MS, () => events.onWords("many servers start, and this one in its turn"));
    const ownTurns = getOrInsertComputed(turnsByPrincipal, asked.principal, newTurns);
    const inTurnOfAll = () => turns.run(asked.principal, begin, signal);
    await ownTurns.run(programOf(asked.server), inTurnOfAll, signal).finally(stopTelling);
    return opened ?? refuse("unavailable", "nobody waits for it", { reason: "MCP_SERVER_UNAVAILABLE" });
  }

  function opener(asked: OpenedConnection): OpenLink {
    const { server, holder, authorization } = asked;
    const open: OpenLink = async (events, start, signal, closing) => {
      using time = timeoutSignal(start.ms);
      using ending = openEnding(signal, time);
      const limit = ending.signal;
      const isOfRun = holder.runId !== "";
      if (isOfRun) await requireOutside(server, runGuard);
      const given = {
        server: isOfRun ? { ...server, sampling: false } : withSecrets(server, secrets),
        module: options.findTransport(server),
        context: {
          ...context,
          onWords: events.onWords,
          ...(isOfRun && { guard: runGuard }),
          ...(authorization && { authorization }),
        },
        era: eras.of(server),
        inSpan: options.inSpan,
        ...events,
      };
      const { openLink } = await sdkOfMcp();
      const link = await openLink(given, start, limit, closing).catch((error) => {
        eras.forget(server);
        throw error;
      });
      eras.note(server, link.era);
      return { link, listed: await listOrClose(link, { limit, start, closing }) };
    };
    return isProcess(server) ? (...given) => inTurn(asked, open, ...given) : open;
  }
}

/** Loaded with the first server: it takes 10 MB. */
const sdkOfMcp = () => import("../link/opening/open-link.ts");

/** For every transport; HTTP holds each of its connections to it, redirected ones too. */
async function requireOutside(server: McpServer, guard: AddressGuard): Promise<void> {
  const { url } = partsOfTransport(server);
  const parsed = url === "" ? null : URL.parse(url);
  if (parsed === null) return;
  const { protocol, hostname } = parsed;
  const port = Number(parsed.port) || (["https:", "wss:"].includes(protocol) ? 443 : 80);
  await guard.resolve(hostname, port);
}

async function listOrClose(link: Link, given: { limit: AbortSignal; start: StartTime; closing: Promise<unknown>[] }) {
  try {
    return await link.list(given.limit);
  } catch (error) {
    const isTimeUp = given.limit.reason instanceof Error && given.limit.reason.name === "TimeoutError";
    const ended = await Promise.race([link.ended, undefined]); // with its exit and last words
    const text = isTimeUp
      ? textOfLateStart(given.start, "has not listed its tools")
      : `its tools cannot be listed: ${ended ?? messageFromUnknown(error)}`;
    given.closing.push(Promise.resolve(link[Symbol.asyncDispose]()));
    throw new Failure("unavailable", text, { reason: "MCP_SERVER_UNAVAILABLE", cause: error });
  }
}
