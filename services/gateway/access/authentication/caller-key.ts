import { createContextKey } from "@connectrpc/connect";
import type { Caller } from "#runtime/rpc/identity.ts";

/** Who calls, as the gateway has found out; nobody, where no credentials are needed. */
export const callerKey = createContextKey<Caller>({ isOperator: false }, { description: "who calls" });
