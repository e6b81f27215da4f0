// Who somebody is, said by a token that no issuer gave him: at the gateway that takes JWTs, and at the services behind it.

import {
  type CryptoKey,
  createRemoteJWKSet,
  decodeProtectedHeader,
  exportSPKI,
  generateKeyPair,
  importJWK,
  type JWTPayload,
  SignJWT,
  UnsecuredJWT,
} from "jose";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { connectOnce } from "#runtime/bus/credentials/connect.ts";
import { jwkOfLogin, publicKeyOf } from "#runtime/bus/credentials/login.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { clientFor } from "../../../services/clients.ts";
import { gatewayAt } from "../../system/access/world.ts";
import { type Attack, type Ground, tryAll } from "../attack.ts";

const inSeconds = (seconds: number) => Math.floor(Date.now() / 1_000) + seconds;

/** Tokens that say that alice, an operator, asks, each wrong in its way. */
async function forged({ issuer, audience, jwksUrl, own }: Ground["jwt"]): Promise<Record<string, string>> {
  const claims = { iss: issuer, aud: audience, sub: "alice", roles: ["operator"], exp: inSeconds(600) };
  const { privateKey } = await generateKeyPair("ES256");
  const { kid = "" } = decodeProtectedHeader(own);
  const sign = (changes: JWTPayload, header: Record<string, unknown> = {}, key: CryptoKey | Uint8Array = privateKey) =>
    new SignJWT({ ...claims, ...changes }).setProtectedHeader({ alg: "ES256", kid, ...header }).sign(key);
  const publicKey = await createRemoteJWKSet(new URL(jwksUrl))({ alg: "ES256", kid }, { payload: "", signature: "" });
  const spki = new TextEncoder().encode(await exportSPKI(publicKey));
  const [head = "", , signature = ""] = own.split(".");
  const spliced = Buffer.from(JSON.stringify(claims)).toString("base64url");
  const none = new UnsecuredJWT(claims).encode();
  const kids = ["", "../../../dev/null", "/dev/null", "' OR 1=1 --", "no such key", `${jwksUrl}#${kid}`];
  return {
    "alg none": none,
    "alg None": none.replace(/^[^.]+/, Buffer.from('{"alg":"None"}').toString("base64url")),
    "alg none, with a signature": `${none}${signature}`,
    "a key of its own": await sign({}),
    "a key of its own that it brings along": await sign({}, { jwk: { kty: "EC" } }),
    "keys of its own at an address": await sign({}, { jku: "http://127.0.0.1:9/keys", x5u: "http://127.0.0.1:9/keys" }),
    "the public key as a secret (HS256)": await sign({}, { alg: "HS256" }, spki),
    "an empty secret (HS256)": await sign({}, { alg: "HS256" }, new Uint8Array(32)),
    "claims of alice's under its own signature": `${head}.${spliced}.${signature}`,
    "no signature": own.slice(0, own.lastIndexOf(".") + 1),
    "half a token": own.slice(0, own.length / 2),
    ...Object.fromEntries(
      await Promise.all(kids.map(async (other) => [`kid ${JSON.stringify(other)}`, await sign({}, { kid: other })])),
    ),
  };
}

const whoIs = async (url: string, headers: Record<string, string>) => {
  try {
    const { session } = await gatewayAt(url, undefined, headers)
      .client(SessionService)
      .getSession({ sessionId: "alices" });
    return `got the session of ${session?.principal}`;
  } catch (error) {
    return failureFromConnectError(error).code;
  }
};

/** Tokens as services send them to each other, signed by the key of a provider. */
async function identities({ providerSeed, jwt }: Ground): Promise<Record<string, string>> {
  const login = { name: "provider.stranger", seed: providerSeed };
  const key = await importJWK(jwkOfLogin(login));
  const sign = (claims: JWTPayload) =>
    new SignJWT({ iss: publicKeyOf(login), aud: "tool-router", sub: "alice", exp: inSeconds(60), ...claims })
      .setProtectedHeader({ alg: "EdDSA" })
      .sign(key);
  return {
    "signed by a provider": await sign({}),
    "signed by a provider, for an operator": await sign({ roles: ["operator"] }),
    "signed by a provider, as a service": await sign({ svc: "tool-router" }),
    "for another service": await sign({ aud: "orchestrator" }),
    "that has expired": await sign({ exp: inSeconds(-600) }),
    "of the issuer of people": jwt.own,
    "signed by nobody": new UnsecuredJWT({ sub: "alice", aud: "tool-router", svc: "gateway" }).encode(),
  };
}

export const tokens: readonly Attack[] = [
  {
    name: "JWTs that no issuer gave: unsigned, by other keys, for others, too late",
    requirement: "SEC-1",
    async play(ground) {
      const { url, own, misdirected } = ground.jwt;
      const bearer = (token: string) => whoIs(url, { authorization: `Bearer ${token}` });
      const ownSays = await bearer(own);
      if (ownSays !== "permission_denied") throw new Error(`mallory's own token says: ${ownSays}`);
      const tries = Object.entries({ ...(await forged(ground.jwt)), ...misdirected });
      return tryAll(tries, async ([what, token]) => {
        const got = await bearer(token);
        return got === "unauthenticated" ? undefined : `${what}: ${got}`;
      });
    },
  },
  {
    name: "identities of the bus: made up, for others, and sent on by a provider",
    requirement: "SEC-1",
    async play(ground) {
      const { url, keys, natsUrl, providerSeed } = ground;
      const connection = await connectOnce({
        ...{ url: natsUrl, name: "attack" },
        login: { name: "provider.stranger", seed: providerSeed },
      });
      const party = { connection, [Symbol.asyncDispose]: () => connection.close() };
      await using _party = party;
      const agent = { name: "evil", model: { provider: "scripted", model: "keeper.json" } };
      return await tryAll(Object.entries(await identities(ground)), async ([what, token]) => {
        const headers = { "toolbus-identity": token };
        const got = {
          "without a key": await whoIs(url, headers),
          "with mallory's key": await whoIs(url, { ...headers, "x-api-key": keys.mallory }),
          "on the bus": await clientFor(party, AgentService)
            .applyAgent({ agent }, { headers })
            .then(
              () => "applied an agent",
              (error) => failureFromConnectError(error).code,
            ),
        };
        const isRefused = Object.values(got).every(
          (code) => code === "unauthenticated" || code === "permission_denied",
        );
        return isRefused ? undefined : `${what}: ${JSON.stringify(got)}`;
      });
    },
  },
];
