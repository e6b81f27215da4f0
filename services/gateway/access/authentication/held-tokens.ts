import type { Bucket } from "#runtime/bus/buckets/bucket.ts";
import type { BucketView } from "#runtime/bus/buckets/views/bucket-view.ts";
import { callPatience } from "#runtime/bus/link/call-patience.ts";
import { BoundedMap } from "#runtime/collections/maps/bounded-map.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import {
  endOfSealed,
  keyOfSubject,
  type SubjectToken,
  sealSubjectToken,
} from "#runtime/rpc/access/tokens/subject-tokens.ts";

/** Who is forgotten is known again by the next request. */
const MOST_PERSONS = 10_000;

interface Held extends SubjectToken {
  /** Of the key for which it was sealed last. */
  revision?: number | undefined;
  handing?: Promise<void>;
}

/** The tokens by which persons came to this gateway last, in memory alone; what is wanted of them is handed over (SUBJECT-1). */
export class HeldTokens {
  readonly #held = new BoundedMap<string, Held>(MOST_PERSONS);
  readonly #tokens: Pick<Bucket<string>, "update">;
  readonly #wanted: Pick<BucketView<string>, "get">;
  readonly #onFault: (fault: string) => void;

  constructor(tokens: Pick<Bucket<string>, "update">, wanted: BucketView<string>, onFault: (fault: string) => void) {
    [this.#tokens, this.#wanted, this.#onFault] = [tokens, wanted, onFault];
    wanted.changes.listen(() => {
      for (const key of this.#held.keys()) void this.#hand(key);
    });
  }

  /** At once, where nobody wants it, or it was handed over. */
  async keep(subject: SubjectToken): Promise<void> {
    const key = keyOfSubject(subject.principal);
    if ((this.#held.get(key)?.expiresAtMs ?? 0) < subject.expiresAtMs) this.#held.set(key, { ...subject });
    await this.#hand(key);
  }

  async #hand(key: string): Promise<void> {
    const [held, wanted] = [this.#held.get(key), this.#wanted.get(key)];
    if (held === undefined || wanted === undefined || held.expiresAtMs <= Date.now()) return;
    const isAsked = held.revision !== wanted.revision;
    held.revision = wanted.revision;
    if (isAsked) held.handing = this.#write(key, held, wanted.value);
    await held.handing;
  }

  async #write(key: string, held: Held, publicKey: string): Promise<void> {
    try {
      const { token, principal, expiresAtMs } = held;
      const sealed = await sealSubjectToken({ token, principal, expiresAtMs }, publicKey);
      const isLast = (standing: string | undefined) => standing === undefined || endOfSealed(standing) <= expiresAtMs;
      const decide = (standing: string | undefined) => (isLast(standing) ? sealed : undefined); // SUBJECT-3
      await callPatience.run(() => this.#tokens.update(key, decide));
    } catch (error) {
      held.revision = undefined; // the next request tries again
      this.#onFault(`a person's token cannot be handed over: ${messageFromUnknown(error)}`);
    }
  }
}
