// Contexts: which address a command asks, and whose key it sends there.

import { once } from "node:events";
import { chmod, mkdtemp, rm, stat } from "node:fs/promises";
import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type CommandOptions, runCommand } from "../../harness/commands/command.ts";

const stack = new AsyncDisposableStack();
const asked: string[] = [];
const urls: Record<"one" | "other", string> = { one: "", other: "" };
let home: string;

/** What is at an address writes down what it was asked, and knows nothing. */
async function openAddress(name: "one" | "other"): Promise<void> {
  const server = createServer(({ headers }, response) => {
    asked.push(`${name} ${headers.authorization ?? "no key"}`);
    response.writeHead(404).end();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  stack.defer(() => void server.close());
  urls[name] = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "toolbus-test-contexts-"));
  stack.defer(() => rm(home, { recursive: true, force: true }));
  await Promise.all([openAddress("one"), openAddress("other")]);
  await toolbus({ input: "key-of-one\n" }, "context", "set", "one", "--url", urls.one, "--api-key-stdin");
  await toolbus({}, "context", "set", "other", "--url", urls.other, "--api-key", "key-of-other");
});
beforeEach(() => void asked.splice(0));
afterAll(() => stack.disposeAsync());

const toolbus = ({ env, ...options }: CommandOptions, ...args: string[]) =>
  runCommand(args, { ...options, env: { XDG_CONFIG_HOME: home, ...env } });

describe("PROD-1 a command asks", () => {
  it.each<[string, NodeJS.ProcessEnv, string[], string]>([
    ["the context that it is told, with its key", {}, ["--context", "one"], "one Bearer key-of-one"],
    ["that of the environment", { TOOLBUS_CONTEXT: "other" }, [], "other Bearer key-of-other"],
    ["the one of the option before", { TOOLBUS_CONTEXT: "other" }, ["--context", "one"], "one Bearer key-of-one"],
    ["never with a key of the environment", { TOOLBUS_API_KEY: "mine" }, ["--context", "one"], "one Bearer key-of-one"],
    ["with the key of the option", {}, ["--context", "one", "--api-key", "new"], "one Bearer new"],
  ])("%s", async (_, env, args, expected) => {
    await toolbus({ env }, "agents", ...args);
    expect(asked).toContain(expected);
    expect(new Set(asked).size, "and nothing else").toBe(1);
  });

  it("the address of the option, whatever context the environment names, and sends it no key of that", async () => {
    await toolbus({ env: { TOOLBUS_CONTEXT: "other" } }, "agents", "--url", urls.one);
    expect(new Set(asked)).toEqual(new Set(["one no key"]));
  });
});

describe("PROD-1 contexts", () => {
  it("are listed without keys, and are the user's alone", async () => {
    const { stdout } = await toolbus({}, "context", "list");
    expect(stdout).toMatch(/^NAME +URL +KEY\none +http:\S+ +yes\nother +http:\S+ +yes\n$/);
    const path = join(home, "toolbus", "contexts.json");
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    await chmod(path, 0o644);
    const refused = await toolbus({}, "agents", "--context", "one");
    expect(refused).toMatchObject({ exitCode: 1, stderr: expect.stringContaining(`chmod 600`) });
    expect(asked).toEqual([]);
    await chmod(path, 0o600);
  });

  it.each<[string[], string]>([
    [["--context", "nope", "agents"], 'there is no context "nope": known: one, other; "toolbus context set nope'],
    [["--context", "one", "--url", "http://127.0.0.1:1", "agents"], "give either --context or --url"],
    [["context", "set", "a b", "--url", "http://127.0.0.1:1"], "a name of a context has letters"],
    [["context", "set", "third"], "say where it is: --url URL"],
    [
      ["context", "set", "third", "--url", "http://127.0.0.1:1", "--api-key-stdin"],
      "the key of standard input: it is empty",
    ],
    [["context", "delete", "third"], 'there is no context "third"'],
    [["context", "set", "third", "--url", "http:foo"], "that is no context: "],
    [["--context", "one", "down"], "toolbus down is for this machine: it takes no --context"],
    [["--url", "http://127.0.0.1:1", "down"], "toolbus down is for this machine: it takes no --url"],
    [["--context", "one", "context", "set", "copy"], "it takes no --context"],
  ])("%j is refused", async (args, words) => {
    const { exitCode, stdout, stderr } = await toolbus({ input: "" }, ...args);
    expect(stderr).toContain(words);
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: "" });
  });

  it("that the environment names are asked for by no command that needs none", async () => {
    for (const name of ["", "gone"]) {
      const env = { TOOLBUS_CONTEXT: name };
      expect((await toolbus({ env }, "context", "list")).stdout).toContain("one");
      expect((await toolbus({ env }, "completion", "bash")).exitCode).toBe(0);
      expect(await toolbus({ env }, "context", "set", "copy")).toMatchObject({ exitCode: 2 });
    }
    expect((await toolbus({ env: { TOOLBUS_CONTEXT: "" } }, "agents", "--url", urls.one)).stderr).not.toContain(
      "context",
    );
  });

  it.each<[string, string[], CommandOptions]>([
    ["of an option", ["agents", "--url", "http://127.0.0.1:1", "--api-key", "tb_secret\nword"], {}],
    ["of a variable", ["agents"], { env: { TOOLBUS_API_KEY: "tb_secret…" } }],
    [
      "of standard input",
      ["context", "set", "k", "--url", "http://127.0.0.1:1", "--api-key-stdin"],
      { input: "tb_secret\nword" },
    ],
  ])("take no key %s that no header can carry, and do not repeat it", async (_, args, options) => {
    const { exitCode, stderr } = await toolbus(options, ...args);
    expect(exitCode).toBe(2);
    expect(stderr).toContain("a key is one word of ASCII characters");
    if (options.env === undefined) expect(stderr).not.toContain("word\n");
  });

  it("are forgotten", async () => {
    await toolbus({}, "context", "set", "third", "--url", urls.one);
    expect((await toolbus({}, "context", "delete", "third")).exitCode).toBe(0);
    expect((await toolbus({}, "context", "list")).stdout).not.toContain("third");
  });

  it("are told in JSON where it is asked for, were there none", async () => {
    const env = { XDG_CONFIG_HOME: join(home, "none") };
    const told = async (...args: string[]) => JSON.parse((await toolbus({ env }, "context", ...args, "--json")).stdout);
    expect(await told("list")).toEqual({ contexts: [] });
    const context = { name: "third", url: urls.one, hasKey: false };
    expect(await told("set", "third", "--url", urls.one)).toEqual(context);
    expect(await told("list")).toEqual({ contexts: [context] });
    expect(await told("delete", "third")).toEqual(context);
  });
});
