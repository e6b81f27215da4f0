import { expect, it } from "vitest";
import { readEnvironment } from "../environment.ts";
import { readLoginSettings } from "./login-settings.ts";

const tokens = { issuer: "https://login.example/", audiences: ["https://toolbus.example/mcp", "other"] };

function read(env: NodeJS.ProcessEnv, issued: typeof tokens | undefined = tokens) {
  const reader = readEnvironment(env);
  const settings = readLoginSettings(reader, issued);
  reader.finish();
  return settings;
}

it("ORCH-12 people log in where tokens are of, and nowhere unless it is said", () => {
  expect(read({})).toBeUndefined();
  const env = { TOOLBUS_CONSOLE_CLIENT_ID: "console", TOOLBUS_CONSOLE_LOGIN_ORIGINS: "https://tokens.example" };
  expect(read(env)).toEqual({
    ...{ clientId: "console", scope: "openid", issuer: tokens.issuer, audience: "https://toolbus.example/mcp" },
    origins: ["https://login.example", "https://tokens.example"],
  });
});

it.each([
  ["no issuer", {}, undefined, /TOOLBUS_JWT_ISSUER/],
  ["an issuer that is no address", {}, { ...tokens, issuer: "us" }, /TOOLBUS_JWT_ISSUER.*URL/s],
  ["an origin with a path", { TOOLBUS_CONSOLE_LOGIN_ORIGINS: "https://tokens.example/x" }, tokens, /LOGIN_ORIGINS/],
  ["a word of a policy", { TOOLBUS_CONSOLE_LOGIN_ORIGINS: "https://a.example; script-src *" }, tokens, /LOGIN_ORIGINS/],
])("CONFIG a client id with %s is refused", (_, env, issued, expected) => {
  const asked = () => {
    const reader = readEnvironment({ TOOLBUS_CONSOLE_CLIENT_ID: "console", ...env });
    readLoginSettings(reader, issued);
    reader.finish();
  };
  expect(asked).toThrow(expected);
});
