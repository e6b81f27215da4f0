import { delay } from "#runtime/time/delay.ts";
import type { Grant, LoginRecord } from "./record.ts";
import type { KeptRecord, LoginRecords } from "./records.ts";
import { isGrantOver } from "./requests/tokens.ts";

/*
 * Renews grants, of which all instances and connections of an owner use one. Authorization servers rotate refresh tokens, and take
 * a second use of one for a theft.
 *
 * W1  Who renews has written his name into the record, at the revision that he read, and stores what he got at that one.
 * W2  The others wait for it. Where it does not come for longer than a renewal may take, another one claims it.
 * W3  A grant that the authorization server says is over is forgotten; after any other fault it stays.
 */

const RENEWAL_MS = 30_000;

export class Renewals {
  readonly #records: LoginRecords;
  readonly #going = new Map<string, Promise<Grant | undefined>>();

  constructor(records: LoginRecords) {
    this.#records = records;
  }

  /** Gives the grant that takes the place of the one with that access token, whoever gets it; undefined when there is none. */
  renew(key: string, stale: string | undefined, work: RenewalWork): Promise<Grant | undefined> {
    const going = this.#going.get(key);
    if (going) return going;
    const renewal = this.#renew(key, stale, work).finally(() => this.#going.delete(key));
    this.#going.set(key, renewal);
    return renewal;
  }

  async #renew(key: string, stale: string | undefined, work: RenewalWork): Promise<Grant | undefined> {
    let awaited: { name: string; untilMs: number } | undefined;
    for (;;) {
      const changed = this.#records.changed;
      const name = crypto.randomUUID();
      const isGiven = (other: string) => other === awaited?.name && performance.now() > awaited.untilMs;
      const claim = await this.#records.update(key, (standing) => {
        const record = standing ?? work.absent();
        if (record === undefined || record.grant?.accessToken !== stale) return undefined;
        if (record.renewing !== undefined && !isGiven(record.renewing)) return undefined;
        return { ...record, renewing: name };
      });
      const { grant, renewing } = claim.record;
      if (grant?.accessToken !== stale) return grant;
      if (claim.hasChanged) {
        const got = await this.#work(claim, work);
        if (got !== "overtaken") return got;
      } else if (renewing === undefined) return undefined;
      else if (awaited?.name !== renewing) awaited = { name: renewing, untilMs: performance.now() + RENEWAL_MS };
      const over = new AbortController();
      await Promise.race([changed, delay(1_000, over.signal).catch(() => {})]);
      over.abort();
    }
  }

  async #work(claim: KeptRecord, { obtain }: RenewalWork): Promise<Grant | undefined | "overtaken"> {
    const { renewing: _, ...record } = claim.record;
    try {
      const renewed = await obtain(record);
      return (await this.#records.replace(claim, renewed)) ? renewed.grant : "overtaken";
    } catch (error) {
      const { grant: _over, ...without } = record;
      await this.#records.replace(claim, isGrantOver(error) ? without : record); // W3
      throw error;
    }
  }
}

export interface RenewalWork {
  /** What stands for a record that is not there; undefined where there is nothing to renew then. */
  absent(): LoginRecord | undefined;
  /** The record with its new grant. */
  obtain(record: LoginRecord): Promise<LoginRecord>;
}
