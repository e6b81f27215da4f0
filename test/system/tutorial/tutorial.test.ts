// The tutorial as a reader follows it: each page in a copy of its folder, with the package installed, command by command.

import { spawn } from "node:child_process";
import { cp, glob, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { until } from "#runtime/time/until.ts";
import { freePort } from "../../../examples/free-port.ts";
import { projectRoot } from "../../architecture/source-files.ts";
import { type InstalledPackage, installPackage } from "../../harness/installed-package.ts";
import { blocksOf, hasBegunAsPrinted, isAsPrinted, withIds } from "./page.ts";

const folder = join(projectRoot, "examples", "tutorial");
const pages = (await readdir(folder, { withFileTypes: true }))
  .filter((one) => one.isDirectory())
  .map(({ name }) => name)
  .sort();
/** Its commands are typed as it says; those of the other pages without npx, which needs more time than they do. */
const typedWhole = pages[0];

const stack = new AsyncDisposableStack();
let installed: InstalledPackage;

beforeAll(async () => {
  const root = await mkdtemp(join(tmpdir(), "toolbus-tutorial-"));
  stack.defer(() => rm(root, { recursive: true, force: true, maxRetries: 20 }));
  installed = await installPackage(root);
}, 240_000);
afterAll(() => stack.disposeAsync());

it.concurrent.each(pages)("PROD-1 the page %s says what happens", { timeout: 240_000 }, async (name) => {
  const place = join(installed.project, name);
  await cp(join(installed.project, "node_modules/toolbus/examples/tutorial", name), place, { recursive: true });
  await using reader = await openReader(place);
  const blocks = blocksOf(await readFile(join(place, "README.md"), "utf8"));
  expect(blocks.filter(({ kind }) => kind === "commands").length).toBeGreaterThan(2);
  for (const block of blocks) {
    if (block.kind === "file") await reader.compare(block.path, block.text);
    else await reader.follow(name === typedWhole ? block.script : withoutNpx(block.script), block);
  }
});

const withoutNpx = (script: string) => script.replaceAll("npx toolbus", "toolbus");

/** Somebody with a shell in a folder, whose suite has a port of its own. */
async function openReader(place: string) {
  const started = new AsyncDisposableStack();
  const port = String(await freePort());
  const {
    TOOLBUS_URL: _url,
    TOOLBUS_API_KEY: _key,
    TOOLBUS_DIRECTORY: _directory,
    NATS_URL: _nats,
    ...own
  } = process.env;
  const env = { ...own, ...installed.env, NO_COLOR: "1", TOOLBUS_HTTP_PORT: port, npm_lifecycle_event: "npx" };
  const atPort = (text: string) => text.replaceAll("7480", port);
  for (const path of await Array.fromAsync(glob("tools/*.json", { cwd: place })))
    await writeFile(join(place, path), atPort(await readFile(join(place, path), "utf8")));
  let exported = "";
  let printed = "";

  function start(script: string) {
    const child = spawn("sh", ["-e", "-c", `${exported}${script}`], { cwd: place, env, detached: true });
    const written = { text: "" };
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (text: string) => {
        written.text += text;
      });
    const ended = new Promise<number | null>((resolve) => child.on("close", resolve));
    started.defer(async () => {
      if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, "SIGTERM");
      await ended;
    });
    return { written, ended };
  }

  async function follow(
    script: string,
    { goesOn, printed: expected }: { goesOn: boolean; printed: string | undefined },
  ) {
    const said = atPort(withIds(script, printed));
    const { written, ended } = start(said);
    const isAsSaid = goesOn ? hasBegunAsPrinted : isAsPrinted;
    if (goesOn) await until(() => isAsSaid(atPort(expected ?? "…"), written.text), { timeoutMs: 90_000, what: said });
    else expect(await ended, `${said}\n${written.text}`).toBe(0);
    if (expected !== undefined && !isAsSaid(atPort(expected), written.text))
      expect(written.text).toBe(atPort(expected));
    printed += written.text;
    exported += said
      .split("\n")
      .filter((line) => line.startsWith("export "))
      .map((line) => `${line}\n`)
      .join("");
  }

  const compare = async (path: string, text: string) =>
    expect(await readFile(join(place, path), "utf8"), path).toBe(atPort(text));
  return { follow, compare, [Symbol.asyncDispose]: () => started.disposeAsync() };
}
