import { PRINCIPAL_HEADER, principalOf } from "#runtime/rpc/identity.ts";
import type { Asker } from "../sessions.ts";

/** The gateway names a principal with whatever comes from outside; who names none is one of the suite's own services. */
export function askerOf({ requestHeader }: { requestHeader: Headers }): Asker {
  return requestHeader.get(PRINCIPAL_HEADER) ? principalOf(requestHeader) : undefined;
}
