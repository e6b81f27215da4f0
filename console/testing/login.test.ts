// People log in at an OpenID provider, a real one, whose tokens the gateway takes (ORCH-12, SEC-2).

import { afterAll, beforeAll, expect, it } from "vitest";
import { freePort } from "../../examples/free-port.ts";
import {
  type AuthorizationServer,
  openAuthorizationServer,
} from "../../services/mcp-bridge/auth/testing/authorization-server.ts";
import { openStage, type Stage } from "./stage.ts";

const audience = "https://toolbus.example/mcp";
const operatorKey = "the-key-of-olga-herself";
/** A page exchanges a token 30 s before its end: this one soon after it came. */
const accessTokenTtl = 33;
const stack = new AsyncDisposableStack();
let issuer: AuthorizationServer;
let stage: Stage;

beforeAll(async () => {
  const port = await freePort();
  const client = {
    client_id: "console",
    redirect_uris: [`http://127.0.0.1:${port}/`],
    token_endpoint_auth_method: "none" as const,
    application_type: "native" as const,
  };
  const configuration = {
    clients: [client],
    clientBasedCORS: () => true,
    features: {
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({
          ...{ scope: "read", audience, accessTokenTTL: accessTokenTtl, accessTokenFormat: "jwt" as const },
          jwt: { sign: { alg: "ES256" as const } },
        }),
      },
    },
  };
  issuer = stack.use(await openAuthorizationServer({ configuration, accessTokenTtl }));
  const env = {
    TOOLBUS_API_KEYS: `olga:${operatorKey}`,
    TOOLBUS_OPERATORS: "olga",
    TOOLBUS_DEFAULT_GRANT: "*",
    TOOLBUS_JWT_ISSUER: issuer.issuer,
    TOOLBUS_JWT_AUDIENCE: audience,
    TOOLBUS_JWT_JWKS_URL: `${issuer.issuer}/jwks`,
    TOOLBUS_CONSOLE_CLIENT_ID: "console",
    TOOLBUS_CONSOLE_SCOPE: "openid read",
  };
  stage = stack.use(await openStage({ env, port, key: operatorKey }));
});
afterAll(() => stack.disposeAsync());

const button = () => ({ name: `log in at ${new URL(issuer.issuer).host}` });

it("a login comes back to where the page stood, goes on with later tokens, and is left", async () => {
  const page = await stage.open("#/agents");
  await page.getByRole("button", button()).click();
  await page.getByRole("heading", { name: "Agents" }).waitFor();
  expect(page.url(), "no code and no token in the address").toBe(`${stage.suite.url}/#/agents`);
  const exchanges = () => issuer.tokenRequests.map((request) => request.get("grant_type"));
  expect(exchanges()).toEqual(["authorization_code"]);

  await expect.poll(exchanges).toContain("refresh_token");
  await page.reload();
  await page.getByText("clerk").first().waitFor();

  await page.getByRole("button", { name: "leave" }).click();
  await page.getByLabel("Your key").waitFor();
  expect(await page.evaluate(() => JSON.stringify({ ...sessionStorage })), "nothing is kept").toBe("{}");
  await page.context().close();
});

it("a login that is left while its token is exchanged stays left", async () => {
  const page = await stage.open("#/agents");
  const exchanging = Promise.withResolvers<void>();
  const left = Promise.withResolvers<void>();
  await page.route(`${issuer.issuer}/token`, async (route) => {
    if (route.request().postData()?.includes("grant_type=refresh_token")) {
      exchanging.resolve();
      await left.promise;
    }
    await route.continue();
  });
  await page.getByRole("button", button()).click();
  await exchanging.promise;
  await page.getByRole("button", { name: "leave" }).click();
  await page.getByLabel("Your key").waitFor();
  const exchanged = page.waitForResponse(`${issuer.issuer}/token`);
  left.resolve();
  await (await exchanged).finished();
  await page.evaluate(() => fetch("/console/login.json")); // what the page does with the answer is done by then
  expect(await page.evaluate(() => JSON.stringify({ ...sessionStorage }))).toBe("{}");
  expect(await page.getByLabel("Your key").count()).toBe(1);
  await page.context().close();
});

it("what the issuer refuses is told, and what this tab has not asked for is passed over", async () => {
  const page = await stage.open("");
  await page.goto(`${stage.suite.url}/?code=made-up&state=made-up#/runs`);
  await page.getByRole("button", button()).waitFor();
  expect(page.url()).toBe(`${stage.suite.url}/`);
  await page.route(`${issuer.issuer}/auth**`, (route) => {
    const { searchParams } = new URL(route.request().url());
    const refused = { error: "access_denied", error_description: "not today", state: searchParams.get("state") ?? "" };
    return route.fulfill({
      status: 302,
      headers: { location: `${stage.suite.url}/?${new URLSearchParams({ ...refused, iss: issuer.issuer })}` },
    });
  });
  await page.getByRole("button", button()).click();
  await page
    .getByRole("alert")
    .filter({ hasText: /denied|not today|error/i })
    .waitFor();
  await page.context().close();
});

it("no page met an error, or its policy", () => {
  expect(stage.complaints).toEqual([]);
});
