import type { Bucket } from "#runtime/bus/buckets/bucket.ts";
import type { BucketView } from "#runtime/bus/buckets/views/bucket-view.ts";
import type { Changes } from "#runtime/collections/changes.ts";
import { Failure, refuse } from "#runtime/failure/failure.ts";
import { digest, type LoginRecord, type Owner } from "./record.ts";
import type { Sealing } from "./sealing.ts";

/** Logins of one owner: whoever may open sessions could fill the store else. */
const MOST_OF_ONE = 100;

export interface KeptRecord {
  readonly key: string;
  readonly record: LoginRecord;
  readonly revision: number;
}

export interface RecordsParts {
  bucket: Pick<Bucket<Uint8Array>, "read" | "update" | "replace" | "remove">;
  /** Follows the bucket. */
  view: BucketView<Uint8Array>;
  /** Absent where no key is configured: then nothing is kept. */
  sealing: Sealing | undefined;
}

/** The logins that are kept, by owner and server. */
export class LoginRecords {
  readonly #parts: RecordsParts;
  readonly #opened = new WeakMap<Uint8Array, LoginRecord>();

  constructor(parts: RecordsParts) {
    this.#parts = parts;
  }

  get isKept(): boolean {
    return this.#parts.sealing !== undefined;
  }

  /** Of any. */
  get changes(): Pick<Changes, "next"> {
    return this.#parts.view.changes;
  }

  /** As far as this instance has followed. */
  find(key: string): LoginRecord | undefined {
    const found = this.#parts.view.get(key);
    return found && this.#open(found.value, key);
  }

  of(owner: Owner): KeptRecord[] {
    const prefix = `${digest(owner)}.`;
    return this.#parts.view.entries.flatMap(([key, { value, revision }]) => {
      const record = key.startsWith(prefix) ? this.#open(value, key) : undefined;
      return record ? [{ key, record, revision }] : [];
    });
  }

  async read(key: string): Promise<KeptRecord | undefined> {
    const found = await this.#parts.bucket.read(key);
    const record = found && this.#open(found.value, key);
    return record && { key, record, revision: found.revision };
  }

  /** Decides on what stands; undefined keeps it. What another key has sealed is nothing. */
  async update(
    key: string,
    decide: (record: LoginRecord | undefined) => LoginRecord | undefined,
  ): Promise<KeptRecord & { hasChanged: boolean; before: LoginRecord | undefined }> {
    const sealing = this.#parts.sealing ?? refuseUnkept();
    if (this.#parts.view.get(key) === undefined && decide(undefined) !== undefined) await this.#makeRoom(key);
    const updating = this.#parts.bucket.update(key, (standing) => {
      const decided = decide(standing && this.#open(standing, key));
      return decided && sealing.seal(JSON.stringify(decided), key);
    });
    const result = await updating.catch(refuseTooLarge);
    if (result.hasChanged) await this.#parts.view.reached(result.revision);
    const record = (result.value && this.#open(result.value, key)) ?? { server: null };
    const before = result.before && this.#open(result.before, key);
    return { key, record, before, revision: result.revision, hasChanged: result.hasChanged };
  }

  /** False when the record is not any more what it was at the revision. */
  async replace({ key, revision }: Pick<KeptRecord, "key" | "revision">, record: LoginRecord): Promise<boolean> {
    const sealing = this.#parts.sealing ?? refuseUnkept();
    const stored = await this.#parts.bucket.replace(key, sealing.seal(JSON.stringify(record), key), revision);
    if (stored !== undefined) await this.#parts.view.reached(stored);
    return stored !== undefined;
  }

  #open(sealed: Uint8Array, key: string): LoginRecord | undefined {
    const known = this.#opened.get(sealed);
    if (known) return known;
    const text = this.#parts.sealing?.open(sealed, key);
    if (text === undefined) return undefined;
    const record: LoginRecord = JSON.parse(text); // nobody without the key could have written it
    this.#opened.set(sealed, record);
    return record;
  }

  /** What holds no login leaves for another one, the oldest first. */
  async #makeRoom(key: string): Promise<void> {
    const prefix = key.slice(0, key.indexOf(".") + 1);
    const own = this.#parts.view.entries.filter(([other]) => other.startsWith(prefix));
    if (own.length < MOST_OF_ONE) return;
    const [oldest] = own
      .filter(([other, { value }]) => isUseless(this.#open(value, other)))
      .sort(([, one], [, other]) => one.revision - other.revision);
    if (oldest === undefined)
      refuse("resource_exhausted", `there are ${MOST_OF_ONE} logins at MCP servers already: log out of some`, {
        reason: "MCP_LOGIN_FAILED",
      });
    await this.#parts.bucket.remove(oldest[0], oldest[1].revision);
  }
}

/** One that another key has sealed may be a login. */
function isUseless(record: LoginRecord | undefined): boolean {
  if (record === undefined || record.grant !== undefined || record.renewing !== undefined) return false;
  return (record.pending?.expiresAtMs ?? 0) <= Date.now();
}

function refuseTooLarge(error: unknown): never {
  if (!(error instanceof Failure) || error.reason !== "MESSAGE_TOO_LARGE") throw error;
  const text = `what its authorization server gave is too large to keep: ${error.message}`;
  return refuse("failed_precondition", text, { reason: "MCP_LOGIN_FAILED", cause: error });
}

export function refuseUnkept(): never {
  return refuse(
    "failed_precondition",
    "logins at MCP servers cannot be kept: set TOOLBUS_MCP_LOGIN_KEY at every mcp-bridge (openssl rand -base64 32)",
    { reason: "MCP_LOGIN_FAILED" },
  );
}
