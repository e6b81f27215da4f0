/*
 * Components of a project: modules that draw the questions of a tool in the console, in a folder that its operator fills
 * (docs/console-components.md). They are code that runs in the page, with the key of whoever looks at it.
 *
 * component-1  A file is named by a path below the folder of plain names: none begins with a dot, and none is empty. What the path leads to, links
 *     followed, lies in the folder too.
 * component-2  Scripts and styles alone are served, each of at most 1 MiB, and under its own content type.
 * component-3  The file of a tool is named by its reference: `confirm.js`, `@server/tool.js`. Which tools have one is told for each that is asked
 *     for, and never listed.
 * component-4  A file is read again when it has changed, and not for each request: none of these needs a key.
 * component-5  A folder that was not there at the start is served after the next one: who makes it meanwhile may be a tool.
 */

import { existsSync } from "node:fs";
import { open, realpath, stat } from "node:fs/promises";
import { extname, join, sep } from "node:path";
import { BoundedMap } from "#runtime/collections/maps/bounded-map.ts";
import { refuse } from "#runtime/failure/failure.ts";
import type { HttpRequest, HttpResponse } from "#runtime/rpc/http/messages.ts";
import { answerFailure, answerJson } from "../plain/exchange.ts";
import { answerFile, contentTypes, type ServedFile, servedFile } from "./served-file.ts";

const PREFIX = "/console/ui/";
/** Where the page asks for the module of a tool: `?tool=REFERENCE`; it is told none where there is none. */
const LOOKUP = "/console/ui.json";

const MAX_BYTES = 2 ** 20;
const KEPT_FILES = 64;
const served: ReadonlySet<string> = new Set([".js", ".mjs", ".css"]);

export type Components = ReturnType<typeof createComponents>;

export function createComponents(folder: string, onMissing: () => void = () => {}) {
  const wasThere = existsSync(folder); // component-5
  if (!wasThere) onMissing();
  const kept = new BoundedMap<string, { readonly stamp: string; readonly file: Promise<ServedFile> }>(KEPT_FILES);

  /** component-1, component-2: where the file lies; undefined where there is none to serve. */
  async function find(path: string): Promise<{ real: string; stamp: string; size: number } | undefined> {
    if (!wasThere || !isPlain(path)) return undefined;
    try {
      const [root, real] = await Promise.all([realpath(folder), realpath(join(folder, path))]);
      if (!real.startsWith(root + sep) || !served.has(extname(real))) return undefined;
      const found = await stat(real);
      const { size, mtimeMs, ctimeMs, ino } = found;
      return found.isFile() ? { real, size, stamp: `${ino} ${size} ${mtimeMs} ${ctimeMs}` } : undefined;
    } catch {
      return undefined; // there is none, or the gateway may not see it: it is not served
    }
  }

  /** component-4 */
  async function read(path: string): Promise<ServedFile> {
    const missing = `there is no script or style ${path} in TOOLBUS_UI`;
    const { real, stamp, size } = (await find(path)) ?? refuse("not_found", missing, { reason: "PATH_NOT_FOUND" });
    if (size > MAX_BYTES) refuseLarge(path);
    const known = kept.get(real);
    if (known?.stamp === stamp) return known.file;
    const file = readBounded(real, path);
    kept.set(real, { stamp, file });
    file.catch(() => kept.delete(real)); // whoever asked is told
    return file;
  }

  async function moduleOf(tool: string): Promise<{ module?: string }> {
    const path = `${tool}.js`;
    const isThere = (await find(path)) !== undefined;
    return isThere ? { module: PREFIX + path } : {};
  }

  return {
    /** Gives whether the request is for one of these. */
    take(request: HttpRequest, response: HttpResponse, policy: string): boolean {
      const [path = "", query] = (request.url ?? "").split("?", 2);
      const fail = (error: unknown) => answerFailure(response, error);
      const tool = new URLSearchParams(query).get("tool") ?? "";
      if (path === LOOKUP) moduleOf(tool).then((told) => answerJson(response, 200, told), fail);
      else if (path.startsWith(PREFIX))
        read(path.slice(PREFIX.length)).then((file) => answerFile(request, response, file, policy), fail);
      else return false;
      return true;
    },
  };
}

/** component-1. What a browser would have to write otherwise is no plain name. */
function isPlain(path: string): boolean {
  return path.length <= 512 && /^(?:[\w@-][\w@.-]*\/)*[\w@-][\w@.-]*$/.test(path) && served.has(extname(path));
}

/** The file may grow between its size and its bytes. */
async function readBounded(real: string, path: string): Promise<ServedFile> {
  await using handle = await open(real);
  const { bytesRead, buffer } = await handle.read(Buffer.alloc(MAX_BYTES + 1));
  if (bytesRead > MAX_BYTES) refuseLarge(path);
  return servedFile(contentTypes[extname(path)] ?? "", buffer.subarray(0, bytesRead));
}

function refuseLarge(path: string): never {
  return refuse("resource_exhausted", `${path} is over the limit of ${MAX_BYTES} bytes`, {
    reason: "MESSAGE_TOO_LARGE",
  });
}
