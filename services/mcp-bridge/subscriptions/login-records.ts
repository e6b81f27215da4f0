import { createBucket } from "#runtime/bus/buckets/stored-bucket.ts";
import { openBucketView } from "#runtime/bus/buckets/views/bucket-view.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import type { Logger } from "#runtime/lifecycle/logger.ts";
import { subjectKeysFrom, subjectTokens, wantedSubjects } from "#runtime/rpc/access/tokens/subject-tokens.ts";
import { LoginRecords } from "../auth/records.ts";
import { createSealing } from "../auth/sealing.ts";
import { Subjects } from "../auth/subjects.ts";

const bytes = { encode: (value: Uint8Array) => value, decode: (value: Uint8Array) => value };
const PLACE = { bucket: "toolbus_mcp_logins", prefix: "", codec: bytes } as const;

/** The logins of all, and the tokens of persons, read before this resolves and followed from then on; sealed by the keys. */
export async function openLoginRecords(bus: Bus, keys: readonly Uint8Array[], logger: Logger) {
  const onFault = (fault: string) => logger.error(fault);
  const bucket = createBucket<Uint8Array>(bus, PLACE);
  const tokens = createBucket(bus, subjectTokens);
  await using stack = new AsyncDisposableStack();
  const { view } = stack.use(await openBucketView(bucket, onFault));
  const followed = stack.use(await openBucketView(tokens, onFault));
  const [first, ...others] = keys;
  const sealing = first && createSealing([first, ...others]);
  const wanted = createBucket(bus, wantedSubjects);
  const owned = stack.move();
  return {
    records: new LoginRecords({ bucket, view, sealing }),
    subjects: new Subjects({ tokens, view: followed.view, wanted, keys: keys.map(subjectKeysFrom) }),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
