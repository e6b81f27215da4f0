// docs/settings.md is what an operator believes of the environment. It is made of what configs declare; here is looked
// whether they declare all that they read, and mean the defaults that they say.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { settingsOf } from "#runtime/config/settings.ts";
import { commandSettings } from "../../../cli/project/command-settings.ts";
import { configReaderOf, ignoredVariables, listServices } from "../../../cli/suite/service-names.ts";
import { referencePath, settingsReference } from "../../../tools/reference/settings.ts";
import { projectRoot, sourceFilesBelow } from "../../architecture/source-files.ts";

type ReadConfig = (env: NodeJS.ProcessEnv) => unknown;

const services = listServices();

/** What must be set for a config to be read. */
const required = { TOOLBUS_LOCAL_KEY: "key-of-the-local-one" };

describe("PROD-5 the reference of settings", () => {
  it("is what the configs declare", async () => {
    expect(readFileSync(join(projectRoot, referencePath), "utf8")).toBe(await settingsReference());
  });

  it("has a section for each service", async () => {
    const text = await settingsReference();
    expect(services.length).toBeGreaterThan(5);
    expect(services.filter((service) => !text.includes(`\n## ${service}\n`))).toEqual([]);
  });
});

describe.each(services)("%s", (service) => {
  it("reads exactly the variables that it declares", async () => {
    const readConfig = await configReaderOf(service);
    const declared = settingsOf(readConfig).map(({ name }) => name);
    expect(declared.filter((name) => !name.includes("<")).sort()).toEqual([...readBy(readConfig)].sort());
    expect(declared.includes("TOOLBUS_SECRET_<NAME>")).toBe(readsSecrets(readConfig));
  });

  it("has the defaults that it declares", async () => {
    const readConfig = await configReaderOf(service);
    for (const { name, fallback } of settingsOf(readConfig).filter((one) => one.fallback)) {
      expect({ name, config: readConfig({ ...required, [name]: fallback }) }).toEqual({
        name,
        config: readConfig(required),
      });
    }
  });

  it("says of each setting what it does, in a sentence", async () => {
    const declared = settingsOf(await configReaderOf(service));
    expect(declared.filter(({ meaning }) => !/^[A-Z][^|]{10,}\.$/.test(meaning))).toEqual([]);
  });
});

it("the settings of the command are those that it reads", () => {
  const code = sourceFilesBelow("cli")
    .filter(({ path }) => !path.endsWith("/command-settings.ts"))
    .map((file) => file.text)
    .join("\n");
  const read = new Set(code.match(/\b(?:(?:TOOLBUS|NATS|OPENAI|OTEL)_[A-Z_]+|NODE_COMPILE_CACHE)\b/g));
  const own = commandSettings.map(({ name }) => name);
  expect(own.filter((name) => !read.has(name))).toEqual([]);
  const reference = readFileSync(join(projectRoot, referencePath), "utf8");
  const inReference = (name: string) => reference.includes(`| \`${name.replace(/_NAME$/, "_<NAME>")}\` |`);
  expect([...read].filter((name) => !inReference(name))).toEqual([]);
});

it("PROD-5 a variable that nothing reads is told, with the setting that may be meant", async () => {
  const known = { TOOLBUS_SECRET_X: "1", TOOLBUS_SOCKET: "s", TOOLBUS_MCP_ENVIRONMENT: "TOOLBUS_A", TOOLBUS_A: "1" };
  const unset = { TOOLBUS_HTTP_HOTS: " ", OTHER_PRT: "1" };
  const links = { TOOLBUS_GATEWAY_SERVICE_HOST: "1", TOOLBUS_GATEWAY_PORT: "1", TOOLBUS_GATEWAY_PORT_80_TCP_ADDR: "1" };
  expect(await ignoredVariables({ ...known, ...unset, ...links, TOOLBUS_HTTP_PRT: "8080", TOOLBUS_QQ: "1" })).toEqual([
    "TOOLBUS_HTTP_PRT is ignored: there is no such setting; did you mean TOOLBUS_HTTP_PORT?",
    "TOOLBUS_QQ is ignored: there is no such setting",
  ]);
});

/** The variables of ours that a config asks for; children get others. */
function readBy(readConfig: ReadConfig): Set<string> {
  const read = new Set<string>();
  const env = new Proxy<NodeJS.ProcessEnv>({}, { get: (_, name) => void read.add(String(name)) });
  try {
    readConfig(env);
  } catch {
    // some must be set; all are read by then
  }
  return new Set([...read].filter((name) => /^(TOOLBUS|NATS|OPENAI|OTEL)_/.test(name)));
}

function readsSecrets(readConfig: ReadConfig): boolean {
  const { secrets } = readConfig({ ...required, TOOLBUS_SECRET_PROBE: "x" }) as {
    secrets?: ReadonlyMap<string, string>;
  };
  return secrets?.get("PROBE") === "x";
}
