// The README as who has a checkout follows it: its commands, in their order, in a shell.

import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { until } from "#runtime/time/until.ts";
import { freePort } from "../../../examples/free-port.ts";
import { projectRoot } from "../../architecture/source-files.ts";
import { openModel } from "../fixtures/models/speaking-model.ts";

const stack = new AsyncDisposableStack();
afterAll(() => stack.disposeAsync());

/** What each command prints; those without are shown by a test that they name. */
const printed: Record<string, RegExp | string> = {
  "npm ci": "every run of these tests begins with it",
  "npm run demo": "demo.test.ts",
  "npm start": /toolbus is up/,
  'npx toolbus run demo "hello"': /The MCP server says "Echo: hello"/,
  "npx toolbus tools --agent demo": /encode +worker +callable/,
  'npx toolbus call qr \'{"text":"hi"}\' --agent demo': /"text":"hi"/,
  "npx toolbus watch audit": /permitted/,
  "npx toolbus --help": /Usage: toolbus/,
  "OPENAI_BASE_URL=https://api.openai.com/v1 OPENAI_API_KEY=… npm start": /toolbus is up/,
  "npx toolbus chat assistant": /I have no need of tools\./,
};

/** What is done beside a command that watches. */
const happening = `npx toolbus call qr '{"text":"hi"}' --agent demo`;

it("PROD-5 each command of the README does what the README says", { timeout: 240_000 }, async () => {
  const page = await readFile(join(projectRoot, "README.md"), "utf8");
  const blocks = [...page.matchAll(/^```sh\n(.*?)^```/gms)].map(([, block = ""]) => block);
  const commands = blocks.flatMap((block) => block.trim().split("\n")).map((line) => line.replace(/ +# .*/, ""));
  expect(commands).toEqual(Object.keys(printed));
  await using model = await openModel("I have no need of tools.");
  const shell = await openShell();
  for (const command of commands) {
    const expected = printed[command];
    if (expected instanceof RegExp)
      await shell.type(command.replace(/https\S+/, model.url).replace("…", "key"), expected);
  }
});

/** A terminal whose suite has a directory and a port of its own. `npm start` goes on until the next one. */
async function openShell() {
  const directory = await mkdtemp(join(tmpdir(), "toolbus-readme-"));
  stack.defer(() => rm(directory, { recursive: true, force: true, maxRetries: 20 }));
  const { TOOLBUS_URL: _url, TOOLBUS_API_KEY: _key, NATS_URL: _nats, ...own } = process.env;
  const env = { ...own, NO_COLOR: "1", TOOLBUS_DIRECTORY: directory, TOOLBUS_HTTP_PORT: String(await freePort()) };

  function begin(command: string) {
    const child = spawn("sh", ["-c", command], { cwd: projectRoot, env, detached: true });
    const written = { text: "" };
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (text: string) => {
        written.text += text;
      });
    const ended = new Promise((resolve) => child.on("close", resolve));
    const end = async () => {
      if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, "SIGINT");
      await ended;
    };
    return { written, ended, end };
  }

  let suite: ReturnType<typeof begin> | undefined;
  stack.defer(() => suite?.end());
  return {
    async type(command: string, expected: RegExp) {
      const goesOn = command.endsWith("npm start");
      if (goesOn) await suite?.end();
      const begun = begin(command.includes(" chat ") ? `echo hi | ${command}` : command);
      if (goesOn) suite = begun;
      const isPrinted = async () => {
        if (command.includes(" watch ")) await begin(happening).ended;
        return expected.test(begun.written.text);
      };
      await until(isPrinted, { timeoutMs: 60_000, what: command }).catch(() => {
        expect.fail(`${command} printed: ${begun.written.text}`);
      });
      if (!goesOn) await begun.end();
    },
  };
}
