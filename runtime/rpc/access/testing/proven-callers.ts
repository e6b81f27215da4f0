import { publicKeyOf } from "#runtime/bus/credentials/login.ts";
import { createSeed } from "#runtime/bus/credentials/nkey/nkey.ts";
import { trustListOf } from "#runtime/bus/credentials/trust/trust-list.ts";
import { createCallerSender, type WhoAsks } from "../callers.ts";
import { createIssuer } from "../tokens/issuer.ts";
import { createVerifier } from "../tokens/verifier.ts";

/** Both sides of calls that stay in one process: a key that may speak for everybody, and a server that trusts it. */
export function openProvenCallers(audience = "test") {
  const login = { name: "admin", seed: createSeed() };
  const issuer = createIssuer(login);
  const trusted = trustListOf([{ name: login.name, publicKey: publicKeyOf(login), speaksFor: "everybody" }]);
  return {
    verify: createVerifier({ audience, trust: async () => trusted }),
    /** The key's holder asks, by itself or for the principal of the call that is served, unless a call or `caller` says otherwise. */
    sender: (caller?: WhoAsks) => createCallerSender({ issuer, audience, caller }),
  };
}
