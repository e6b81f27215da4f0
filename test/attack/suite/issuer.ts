// An issuer of tokens for people, and what it has issued to mallory: good ones, and those that are for somebody or something else.

import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from "jose";
import type { Tokens } from "../attack.ts";

const issuer = "https://login.example/";
const audience = "toolbus";

/** With the settings of a gateway that takes its tokens. */
export async function openIssuer(stack: AsyncDisposableStack) {
  const { privateKey, publicKey } = await generateKeyPair("ES256");
  const keys = [{ ...(await exportJWK(publicKey)), kid: "first", alg: "ES256", use: "sig" }];
  const server = createServer((_, response) => response.end(JSON.stringify({ keys })));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  stack.defer(() => {
    server.close();
    server.closeAllConnections();
  });
  const jwksUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`;
  const now = Math.floor(Date.now() / 1_000);
  const sign = (claims: JWTPayload) =>
    new SignJWT({ iss: issuer, aud: audience, sub: "mallory", exp: now + 7_200, ...claims })
      .setProtectedHeader({ alg: "ES256", kid: "first" })
      .sign(privateKey);
  const misdirected = {
    "of another issuer": await sign({ iss: "https://login.example.evil/" }),
    "for another audience": await sign({ aud: "billing" }),
    "for no audience": await sign({ aud: [] }),
    "that has expired": await sign({ exp: now - 600 }),
    "that is not valid yet": await sign({ nbf: now + 3_600 }),
  };
  const jwt: Tokens = { issuer, audience, jwksUrl, own: await sign({}), misdirected };
  const env = { TOOLBUS_JWT_ISSUER: issuer, TOOLBUS_JWT_AUDIENCE: audience, TOOLBUS_JWT_JWKS_URL: jwksUrl };
  return { jwt, env };
}
