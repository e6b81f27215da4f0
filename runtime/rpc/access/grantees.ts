import type { Grants } from "#gen/toolbus/access/v1/access_pb.ts";
import { jsonCodec, type Place } from "../../bus/buckets/bucket.ts";
import { createBucket } from "../../bus/buckets/stored-bucket.ts";
import { type FollowedView, openBucketView } from "../../bus/buckets/views/bucket-view.ts";
import type { Bus } from "../../bus/bus.ts";
import { refuse } from "../../failure/failure.ts";
import { type Caller, isServiceItself, LOCAL_PRINCIPAL, principalOf } from "../identity.ts";

/*
 * Who may use what. An agent, space or external tool names its principals, or has no grants. What gateways know besides is in a bucket,
 * so that it also holds for what goes on without a request, such as a run:
 *
 * GRANT-1  `default`: the principals for whom everything without grants is. A gateway writes it before it listens; without the record,
 *          as before the first gateway of this release, it is for all.
 * GRANT-2  `principal.<name>`: what the latest token of a principal granted it: a resource, with grants or without, or `default`.
 * GRANT-3  A refusal is given only by what every gateway has written before the request was made.
 */

/** What can be granted, as tokens name it. */
type Resource = `${"agent" | "space" | "tool"}:${string}`;

export const DEFAULT_GRANT = "default";

/** Lists of names. */
export const grantBucket: Place<readonly string[]> = {
  bucket: "toolbus_grants",
  prefix: "",
  codec: jsonCodec((value) => {
    if (Array.isArray(value) && value.every((name) => typeof name === "string")) return value;
    throw new TypeError("not a list of names");
  }),
};

export function keyOfPrincipal(principal: string): string {
  return `principal.${Buffer.from(principal).toString("base64url")}`;
}

export interface Grantees {
  /** As far as is known here. Without keys everybody is `local`, whom no list of names can tell apart. */
  isGranted(resource: Resource, grants: Grants | undefined, principal: string): boolean;
  /** SEC-2: refuses a principal that it is not granted to (GRANT-3). */
  require(resource: Resource, grants: Grants | undefined, caller: Caller): Promise<void>;
}

/** Those of a bus, followed for as long as they are open. */
export async function openGrantees(
  bus: Bus,
  onFault: (fault: string) => void,
): Promise<AsyncDisposable & Pick<FollowedView<unknown>, "caughtUp"> & { readonly grantees: Grantees }> {
  const followed = await openBucketView(createBucket(bus, grantBucket), onFault);
  const { view } = followed;

  function isGranted(resource: Resource, grants: Grants | undefined, principal: string): boolean {
    if (principal === LOCAL_PRINCIPAL) return true;
    const byToken = view.get(keyOfPrincipal(principal))?.value ?? [];
    const named = grants?.principals ?? view.get(DEFAULT_GRANT)?.value ?? ["*"];
    const isNamed = named.includes(principal) || named.includes("*");
    return isNamed || byToken.includes(resource) || (grants === undefined && byToken.includes(DEFAULT_GRANT));
  }

  return {
    grantees: {
      isGranted,
      async require(resource, grants, caller) {
        if (isServiceItself(caller)) return;
        const principal = principalOf(caller);
        if (isGranted(resource, grants, principal)) return;
        await followed.caughtUp();
        if (!isGranted(resource, grants, principal)) refuseUngranted(resource, grants, principal);
      },
    },
    caughtUp: followed.caughtUp,
    [Symbol.asyncDispose]: () => followed[Symbol.asyncDispose](),
  };
}

function refuseUngranted(resource: Resource, grants: Grants | undefined, principal: string): never {
  const [name, who] = [resource.replace(":", " "), JSON.stringify(principal)];
  const text =
    grants === undefined
      ? `${name} has no grants, and so is for those whom TOOLBUS_DEFAULT_GRANT of the gateway names: ask an operator to name ${who} there, or in its grants`
      : `${name} is granted to others: ask an operator to name ${who} in its grants`;
  return refuse("permission_denied", text, { reason: "PRINCIPAL_NOT_GRANTED" });
}
