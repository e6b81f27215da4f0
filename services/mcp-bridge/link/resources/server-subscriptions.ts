import type { Client } from "@modelcontextprotocol/client";
import { textOfError } from "../outcome/outcome.ts";

/** Has a server tell of its resources, over one link. */
export interface ServerSubscriptions {
  /** Of these and no others. Gives those that the server does not tell of, and why. Never rejects. One at a time. */
  tellOf(uris: readonly string[]): Promise<ReadonlyMap<string, string>>;
}

interface SubscriptionsOptions {
  /** Ends with the link. */
  readonly signal: AbortSignal;
  /** The server has stopped telling, while the link goes on. */
  readonly onLost: () => void;
}

/** A server that says nothing to a subscription tells nothing either. */
const ANSWER_MS = 10_000;

export function createServerSubscriptions(client: Client, options: SubscriptionsOptions): ServerSubscriptions {
  const canTell = client.getServerCapabilities()?.resources?.subscribe === true;
  const asked = client.getProtocolEra() === "modern" ? byListening(client, options) : byRequest(client, options);
  const refusing = (text: string, uris: readonly string[]) => new Map(uris.map((uri) => [uri, text]));
  return {
    async tellOf(uris) {
      if (!canTell) return refusing("it does not tell of changes of its resources", uris);
      return asked(uris).catch((error) => refusing(textOfError(error), uris));
    },
  };
}

type TellOf = ServerSubscriptions["tellOf"];

/** Up to 2025-11-25, each resource by a request of its own. */
function byRequest(client: Client, { signal }: SubscriptionsOptions): TellOf {
  const standing = new Set<string>();
  const options = { signal, timeout: ANSWER_MS };
  return async (uris) => {
    const wanted = new Set(uris);
    const refused = new Map<string, string>();
    const begin = async (uri: string) => {
      try {
        await client.subscribeResource({ uri }, options);
        standing.add(uri);
      } catch (error) {
        refused.set(uri, textOfError(error));
      }
    };
    const end = async (uri: string) => {
      standing.delete(uri);
      await client.unsubscribeResource({ uri }, options).catch(() => {}); // what it tells nevertheless, nobody waits for
    };
    await Promise.all([
      ...uris.filter((uri) => !standing.has(uri)).map(begin),
      ...[...standing].filter((uri) => !wanted.has(uri)).map(end),
    ]);
    return refused;
  };
}

/** Since 2026-07-28, all by one stream: the next is open before the one of other resources ends. */
function byListening(client: Client, { signal, onLost }: SubscriptionsOptions): TellOf {
  let open: Awaited<ReturnType<Client["listen"]>> | undefined;
  return async (uris) => {
    const filter = { resourceSubscriptions: [...uris] };
    const own = uris.length === 0 ? undefined : await client.listen(filter, { signal, timeout: ANSWER_MS });
    const before = open;
    open = own;
    void own?.closed.then(() => own === open && !signal.aborted && onLost());
    void before?.close().catch(() => {}); // it ends with the link then
    const honored = new Set(own?.honoredFilter.resourceSubscriptions);
    return new Map(uris.filter((uri) => !honored.has(uri)).map((uri) => [uri, "it does not tell of this resource"]));
  };
}
