import { isFailure } from "#runtime/failure/failure.ts";
import { comesWithin } from "#runtime/time/comes-within.ts";
import { retryWhile } from "#runtime/time/retry/retry.ts";
import type { Grant, LoginRecord } from "./record.ts";
import type { KeptRecord, LoginRecords } from "./records.ts";
import { isGrantOver } from "./requests/tokens.ts";

/*
 * Renews grants, of which all instances and connections of an owner use one. Authorization servers rotate refresh tokens, and take
 * a second use of one for a theft.
 *
 * RENEWAL1  Who renews has written his name into the record, and stores what he got while that and the grant stand there. What else
 *     of the record changes meanwhile stays.
 * RENEWAL2  The others wait for it. Where it does not come for longer than a renewal may take, another one claims it.
 * RENEWAL3  A grant that the authorization server says is over is forgotten; after any other fault it stays.
 */

const RENEWAL_MS = 30_000;
const STORING = { initialMs: 100, maxMs: 1_000, patienceMs: RENEWAL_MS };

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
      using change = this.#records.changes.next();
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
      await comesWithin(1_000, change.happened);
    }
  }

  async #work({ key, record }: KeptRecord, { obtain }: RenewalWork): Promise<Grant | undefined | "overtaken"> {
    const { renewing, grant } = record;
    const store = (obtained: Partial<LoginRecord>) =>
      this.#records.update(key, (standing) => {
        const isOurs = standing?.renewing === renewing && standing?.grant?.accessToken === grant?.accessToken;
        return standing && isOurs ? { ...standing, ...obtained, renewing: undefined } : undefined;
      });
    const obtained = await obtain(record).catch(async (error) => {
      await store(isGrantOver(error) ? { grant: undefined } : {}); // RENEWAL3
      throw error;
    });
    // the grant before it is of no use any more
    const { hasChanged } = await retryWhile(
      (error) => isFailure(error, "unavailable"),
      () => store(obtained),
      STORING,
    );
    return hasChanged ? obtained.grant : "overtaken";
  }
}

export interface RenewalWork {
  /** What stands for a record that is not there; undefined where there is nothing to renew then. */
  absent(): LoginRecord | undefined;
  /** What changes of the record with its new grant. */
  obtain(record: LoginRecord): Promise<Partial<LoginRecord>>;
}
