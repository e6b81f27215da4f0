// docs/settings.md is what an operator believes of the environment. It is made of what configs declare; here is looked
// whether they declare all that they read, and mean the defaults that they say.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";
import { settingsOf } from "#runtime/config/settings.ts";
import { listServices } from "../../../cli/suite/service-names.ts";
import { commandSettings } from "../../../tools/reference/command-settings.ts";
import { referencePath, settingsReference } from "../../../tools/reference/settings.ts";
import { projectRoot, sourceFilesBelow } from "../../architecture/source-files.ts";

type ReadConfig = (env: NodeJS.ProcessEnv) => unknown;

const services = listServices();

/** What must be set for a config to be read. */
const required = { TOOLBUS_LOCAL_KEY: "key-of-the-local-one" };

describe("PROD-5 the reference of settings", () => {
  it("is what the configs declare", async () => {
    expect(readFileSync(join(projectRoot, referencePath), "utf8")).toBe(await settingsReference(projectRoot));
  });

  it("has a section for each service", async () => {
    const text = await settingsReference(projectRoot);
    expect(services.length).toBeGreaterThan(5);
    expect(services.filter((service) => !text.includes(`\n## ${service}\n`))).toEqual([]);
  });
});

describe.each(services)("%s", (service) => {
  it("reads exactly the variables that it declares", async () => {
    const readConfig = await readConfigOf(service);
    const declared = settingsOf(readConfig).map(({ name }) => name);
    expect(declared.filter((name) => !name.includes("<")).sort()).toEqual([...readBy(readConfig)].sort());
    expect(declared.includes("TOOLBUS_SECRET_<NAME>")).toBe(readsSecrets(readConfig));
  });

  it("has the defaults that it declares", async () => {
    const readConfig = await readConfigOf(service);
    for (const { name, fallback } of settingsOf(readConfig).filter((one) => one.fallback)) {
      expect({ name, config: readConfig({ ...required, [name]: fallback }) }).toEqual({
        name,
        config: readConfig(required),
      });
    }
  });

  it("says of each setting what it does, in a sentence", async () => {
    const declared = settingsOf(await readConfigOf(service));
    expect(declared.filter(({ meaning }) => !/^[A-Z][^|]{10,}\.$/.test(meaning))).toEqual([]);
  });
});

it("the settings of the command are those that it reads", () => {
  const code = sourceFilesBelow("cli")
    .map((file) => file.text)
    .join("\n");
  const read = new Set(code.match(/\b(?:(?:TOOLBUS|NATS|OPENAI|OTEL)_[A-Z_]+|NODE_COMPILE_CACHE)\b/g));
  const own = commandSettings.map(({ name }) => name);
  expect(own.filter((name) => !read.has(name))).toEqual([]);
  const reference = readFileSync(join(projectRoot, referencePath), "utf8");
  const inReference = (name: string) => reference.includes(`| \`${name.replace(/_NAME$/, "_<NAME>")}\` |`);
  expect([...read].filter((name) => !inReference(name))).toEqual([]);
});

async function readConfigOf(service: string): Promise<ReadConfig> {
  const url = pathToFileURL(join(projectRoot, "services", service, "config.ts")).href;
  return ((await import(url)) as { readConfig: ReadConfig }).readConfig;
}

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
