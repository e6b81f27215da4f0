import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { repeatUntilAborted } from "#runtime/time/retry/retry.ts";
import type { AgentSources } from "../sources.ts";

interface NamedResource {
  readonly source: string;
  readonly uri: string;
}

export interface FollowedResources {
  readonly sources: Pick<AgentSources, "content" | "options" | "sessionId">;
  /** None means those to which the session is subscribed at each time. */
  readonly resources: readonly NamedResource[];
  readonly signal: AbortSignal;
  /** Whether the client was told of changes before, and may have missed some. */
  readonly isResumed?: boolean;
  /** The resource may have changed. */
  readonly onUpdated: (uri: string) => unknown;
  /** Whether its changes are told is settled, for now. */
  readonly onSettled?: (uri: string, isWatched: boolean) => void;
}

const WAITS = { initialMs: 200, maxMs: 10_000 };

/** Whatever bridge tells of them: one that is lost is followed by another, and what was missed may have been a change. Never rejects. */
export async function followResources(followed: FollowedResources): Promise<void> {
  const { sources, signal, onUpdated, onSettled } = followed;
  const known = new Set<string>();
  let { isResumed = false } = followed;
  const follow = async (works: () => void) => {
    const asked = { sessionId: await sources.sessionId(), resources: [...followed.resources] };
    for await (const news of sources.content.watchResources(asked, { ...sources.options, signal })) {
      works();
      const missed = news.watched.filter(({ uri }) => isResumed || known.has(uri));
      isResumed = false;
      for (const { uri } of news.watched) known.add(uri);
      for (const uri of new Set([...news.updated, ...missed].map((one) => one.uri))) await onUpdated(uri);
      for (const { uri } of news.watched) onSettled?.(uri, true);
      for (const { uri } of news.unwatched) onSettled?.(uri, false);
    }
  };
  const unlessOver = (error: unknown) => {
    const { code } = failureFromConnectError(error);
    if (code === "not_found" || code === "permission_denied") return "done"; // the session is over
    throw error;
  };
  await repeatUntilAborted((works) => follow(works).catch(unlessOver), { ...WAITS, signal });
}
