import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { freePort } from "../free-port.ts";
import { NOTE, type Place } from "./public-server.ts";

const run = promisify(execFile);

const FILES = {
  "note.txt": NOTE,
  "note.js": "debugger;\n",
  "eslint.config.js": 'export default [{ rules: { "no-debugger": "error" } }];\n',
  "package.json": '{ "type": "module" }\n',
  "go.mod": "module note\n\ngo 1.24\n",
};

/** Where one server may read and write. */
export async function makePlace(parent: string, name: string, page: string): Promise<Place> {
  const directory = join(parent, name);
  await mkdir(directory);
  for (const [file, text] of Object.entries(FILES)) await writeFile(join(directory, file), text);
  const git = (...args: string[]) => run("git", ["-C", directory, ...args]);
  await git("init", "--quiet");
  await git("add", "note.txt");
  await git("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "-m", NOTE);
  return { directory, page, port: await freePort() };
}

/** Variables with which installers find nothing that they have fetched before. */
export function emptyCaches({ directory }: Place): Record<string, string> {
  const cache = (kind: string) => join(`${directory}.caches`, kind);
  return {
    npm_config_cache: cache("npm"),
    UV_CACHE_DIR: cache("uv"),
    GOCACHE: cache("go-build"),
    GOMODCACHE: cache("go-mod"),
    GOFLAGS: "-modcacherw", // else nobody can delete what it fetches
  };
}

/** Not below the suite's own directory, which servers do not see. */
export async function openDirectory(): Promise<{ path: string } & AsyncDisposable> {
  const path = await mkdtemp(join(tmpdir(), "toolbus-servers-"));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

/** A page on this machine, with the note. */
export async function openPage(): Promise<{ url: string } & AsyncDisposable> {
  const html = `<!doctype html><title>${NOTE}</title><main><h1>${NOTE}</h1></main>`;
  const server = createServer((_, response) => response.setHeader("content-type", "text/html").end(html));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}
