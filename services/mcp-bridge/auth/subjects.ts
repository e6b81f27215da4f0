import type { Bucket } from "#runtime/bus/buckets/bucket.ts";
import type { BucketView } from "#runtime/bus/buckets/views/bucket-view.ts";
import type { Changes } from "#runtime/collections/changes.ts";
import {
  endOfSealed,
  keyOfSubject,
  openSubjectToken,
  type SubjectKeys,
} from "#runtime/rpc/access/tokens/subject-tokens.ts";
import { timeoutSignal } from "#runtime/time/timeout-signal.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import { refuseUnkept } from "./records.ts";

/** How long the gateways may take to hand over what one of them has. */
const HANDED_MS = 1_000;

export interface SubjectsParts {
  tokens: Pick<Bucket<string>, "read" | "remove">;
  /** Follows the bucket of the tokens. */
  view: Pick<BucketView<string>, "get" | "changes">;
  wanted: Pick<Bucket<string>, "update" | "remove">;
  /** The first is what is sealed for, each opens. */
  keys: readonly SubjectKeys[];
}

/** Nobody's token is there to be exchanged. */
export class SubjectMissing extends Error {}

/** The tokens by which persons came to the gateways, as far as they are wanted: `tokens/subject-tokens.ts`. */
export class Subjects {
  readonly #parts: SubjectsParts;

  constructor(parts: SubjectsParts) {
    this.#parts = parts;
  }

  /** Of any. */
  get changes(): Pick<Changes, "next"> {
    return this.#parts.view.changes;
  }

  /** When the token ends that is there, as far as this instance has followed; 0 when there is none. */
  endOf(principal: string): number {
    const stored = this.#parts.view.get(keyOfSubject(principal));
    return stored ? endOfSealed(stored.value) : 0;
  }

  /** What the gateways have, is there a moment after it is wanted first. Throws `SubjectMissing`. */
  async find(principal: string): Promise<string> {
    const { publicKey } = this.#parts.keys[0] ?? refuseUnkept();
    const key = keyOfSubject(principal);
    const before = this.#parts.view.get(key);
    let found = await this.#read(principal);
    if ("token" in found) return found.token;
    const decide = (standing: string | undefined) => (standing === publicKey ? undefined : publicKey);
    if ((await this.#parts.wanted.update(key, decide)).hasChanged) {
      using limit = timeoutSignal(HANDED_MS);
      while (this.#parts.view.get(key) === before && !limit.aborted) {
        using change = this.changes.next();
        await unlessAborted(change.happened, limit).catch(() => {}); // the loop looks at the signal itself
      }
      found = await this.#read(principal);
    }
    return "token" in found ? found.token : Promise.reject(new SubjectMissing(found.why));
  }

  /** What is wanted again is handed over again. */
  async forget(principal: string): Promise<void> {
    for (const bucket of [this.#parts.wanted, this.#parts.tokens]) await bucket.remove(keyOfSubject(principal));
  }

  /** Of its leader, since what a request brought is there before the request is. */
  async #read(principal: string): Promise<{ token: string } | { why: string }> {
    const stored = await this.#parts.tokens.read(keyOfSubject(principal));
    if (stored && endOfSealed(stored.value) <= Date.now())
      return { why: `the token of ${principal} has ended: send a request with a new one, which can resume the run` };
    const token = stored && (await openSubjectToken(stored.value, principal, this.#parts.keys));
    const why = `no token of ${principal} is here: keys and calls of the suite itself are nobody's token`;
    return token === undefined ? { why } : { token };
  }
}
