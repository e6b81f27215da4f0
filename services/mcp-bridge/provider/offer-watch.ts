import {
  type Scope,
  type WatchProvidedToolsRequest,
  type WatchProvidedToolsResponse,
  WatchProvidedToolsResponseSchema,
} from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { createChanges, looksAt } from "#runtime/collections/changes.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { Failure, messageFromUnknown } from "#runtime/failure/failure.ts";
import { withEtag } from "#runtime/rpc/etag.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { repeatUntilAborted } from "#runtime/time/retry/retry.ts";
import { startTimer } from "#runtime/time/timer.ts";
import { sourceOfServer, sourcesOf } from "../servers/servers.ts";
import { type AskedSource, failedOffer, offerFromList, type SourceOffer, startingOffer } from "./offer.ts";
import type { Asker, Provider, ProviderParts } from "./provider.ts";

export interface OfferWatchParts extends Pick<ProviderParts, "connections" | "applied" | "peerOf"> {
  provider: Pick<Provider, "askedOf">;
}

/** How long another instance may take to give a connection away, and this one to open it. */
const MOVING_MS = 20_000;

/** How long the first snapshot waits for servers that are starting; then they are told as what they are. */
const FIRST_SNAPSHOT_MS = 1_000;

/** Snapshots of what a scope is offered: one soon, and another after each change. Ends with the asker's signal. */
export async function* watchTools(
  request: WatchProvidedToolsRequest,
  asker: Asker,
  parts: OfferWatchParts,
): AsyncGenerator<WatchProvidedToolsResponse> {
  if (request.sources.length > 0) {
    yield* watchSources(request.sources, request.scope, asker, parts);
    return;
  }
  for (;;) {
    using change = parts.applied.changes.next();
    const sources = sourcesOf(parts.applied);
    using ending = openEnding(asker.signal);
    void change.happened.then(() => ending.end());
    const { signal } = ending;
    try {
      yield* watchSources(sources, request.scope, { ...asker, signal }, parts);
    } catch (error) {
      asker.signal.throwIfAborted();
      if (!signal.aborted) throw error;
    }
  }
}

async function* watchSources(
  sources: readonly AskedSource[],
  scope: Scope | undefined,
  asker: Asker,
  parts: OfferWatchParts,
): AsyncGenerator<WatchProvidedToolsResponse> {
  const changes = createChanges();
  const offers = new Map<AskedSource, SourceOffer>();
  using ending = openEnding(asker.signal);
  const { signal } = ending;
  const feeds = sources.map((source) => {
    const tell = (offer: SourceOffer) => {
      offers.set(source, offer);
      changes.tell();
    };
    return followSource(source, scope, { ...asker, signal }, parts, { tell, end: ending.end });
  });
  let isDue = false;
  const onTime = () => {
    isDue = true;
    changes.tell();
  };
  const stopTimer = startTimer(FIRST_SNAPSHOT_MS, onTime, { isBackground: true });
  try {
    let told = "";
    for await (const _ of looksAt(changes, signal)) {
      const all = sources.map((source) => offers.get(source) ?? startingOffer(source.name));
      isDue ||= all.every(({ status }) => !status.starting);
      if (!isDue) continue;
      stopTimer();
      const snapshot = withEtag(WatchProvidedToolsResponseSchema, {
        tools: all.flatMap(({ tools }) => tools),
        sources: all.map(({ status }) => status),
      });
      if (snapshot.etag !== told) yield snapshot;
      told = snapshot.etag;
    }
  } finally {
    stopTimer();
    ending.end();
    await Promise.all(feeds);
  }
}

/** Tells what a source offers, wherever its connection is, until the signal aborts or the scope is released. Never rejects. */
async function followSource(
  source: AskedSource,
  scope: Scope | undefined,
  asker: Asker,
  parts: OfferWatchParts,
  { tell, end }: { tell: (offer: SourceOffer) => void; end: (reason: Failure) => void },
): Promise<void> {
  let lostAtMs: number | undefined;
  const follow = async (works: () => void) => {
    const outcome = await followOnce(source, scope, asker, parts, (offer) => {
      works();
      lostAtMs = undefined;
      tell(offer);
    });
    if (outcome === "released") return "done";
    if (!asker.isPeer) return;
    // Whoever forwarded this watch looks for the owner again, or the watch would go from owner to owner.
    end(new Failure("unavailable", `${source.name} has another owner`, { reason: "OWNER_CHANGED" }));
    return "done";
  };
  /** What was told last holds while the connection goes from one instance to another. */
  const onError = (error: unknown) => {
    lostAtMs ??= performance.now();
    const isMoving = failureFromConnectError(error).code === "unavailable" && performance.now() - lostAtMs < MOVING_MS;
    if (!isMoving) tell(failedOffer(source.name, messageFromUnknown(error)));
  };
  await repeatUntilAborted(follow, { initialMs: 50, maxMs: 1_000, signal: asker.signal, onError });
}

async function followOnce(
  source: AskedSource,
  scope: Scope | undefined,
  asker: Asker,
  parts: OfferWatchParts,
  tell: (offer: SourceOffer) => void,
): Promise<"released" | "moved"> {
  const { connections, provider, peerOf } = parts;
  const asked = provider.askedOf(source, scope);
  const located = await connections.locate(asked, asker.signal, { isWatch: true });
  if (located.kind === "there") {
    if (asker.isPeer) return "moved";
    const forwarded = { scope, sources: [sourceOfServer(asked.server, source.fromRun)] };
    const told = peerOf(located.instance).watchTools(forwarded, asker.signal);
    for await (const response of told) tell(offerFromList(source.name, response));
    return "moved";
  }
  const { connection, hold } = located;
  using _ = hold;
  for await (const _ of looksAt(connection.changes, asker.signal)) {
    if (connection.isClosed) break;
    tell(connection.offer());
  }
  await connections.untilWanted(connection, asker.signal); // what was told last holds: a call has it opened again
  if (!connections.isReleased(connection)) return "moved";
  tell(connection.offer());
  return "released";
}
