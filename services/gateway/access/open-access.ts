import { createBucket } from "#runtime/bus/buckets/stored-bucket.ts";
import { openBucketView } from "#runtime/bus/buckets/views/bucket-view.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { grantBucket } from "#runtime/rpc/access/grantees.ts";
import { subjectTokens, wantedSubjects } from "#runtime/rpc/access/tokens/subject-tokens.ts";
import type { Admit } from "#runtime/rpc/http/server.ts";
import type { GatewayConfig } from "../config.ts";
import { createAdmission, createEnter, createEnterAgain, type Enter, type EnterAgain } from "./admission.ts";
import { createAuthenticate } from "./authentication/authentication.ts";
import { createGrantRecords } from "./authentication/grant-records.ts";
import { HeldTokens } from "./authentication/held-tokens.ts";
import { ContentionLimiter } from "./shares/contention-limiter.ts";
import { Shares } from "./shares/shares.ts";
import { UnreadAnswers } from "./shares/unread-answers.ts";

export interface Access extends AsyncDisposable {
  readonly admit: Admit;
  readonly enter: Enter;
  readonly enterAgain: EnterAgain;
  readonly shares: Shares;
}

/** Who may send requests, and how many. Where tokens are taken, what they grant, and who wants them, is followed in buckets. */
export async function openAccess(config: GatewayConfig, bus: Bus, onFault: (fault: string) => void): Promise<Access> {
  await using stack = new AsyncDisposableStack();
  const grants = createBucket(bus, grantBucket);
  const granted = config.tokens && stack.use(await openBucketView(grants, onFault));
  const grantRecords = createGrantRecords(grants, granted?.view, onFault);
  await grantRecords.keepDefault([...config.defaultGrant]);
  const wanted = config.tokens && stack.use(await openBucketView(createBucket(bus, wantedSubjects), onFault));
  const heldTokens = wanted && new HeldTokens(createBucket(bus, subjectTokens), wanted.view, onFault);
  const authenticate = createAuthenticate({ ...config, grantRecords, heldTokens, trust: bus.trust, onFault });
  const shares = new Shares(config.shares);
  const limiter = new ContentionLimiter();
  const unread = new UnreadAnswers(config.maxUnreadBytes);
  const enter = createEnter(authenticate, { shares, limiter, unread });
  const owned = stack.move();
  return {
    admit: createAdmission(enter, shares, new ContentionLimiter(1)),
    enter,
    enterAgain: createEnterAgain(authenticate, shares, limiter),
    shares,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
