// Which files a policy lets a tool touch. What must stay true, whatever somebody does to the paths meanwhile:
//
// PATH1  A path is given to the kernel once, with O_PATH: that opens nothing but a place, so no device wakes and no FIFO waits.
// PATH2  Where it led is asked of the descriptor (`/proc/self/fd/N`), not of the path, and must lie below an allowed directory.
// PATH3  From there on only the descriptor is used: `/proc/self/fd/N` means what was checked, and `/proc/self/fd/N/name` is a
//     name in the very directory that was checked.
// PATH4  A refusal tells nothing of the outside: its text is the same whether something is there or not.
//
// Links are followed, and what counts is where they lead. A hard link is a file of each directory that it stands in: whoever
// may put one below an allowed directory decides that its content may be read there.

import { constants, type Stats } from "node:fs";
import { open, readlink, realpath, statfs } from "node:fs/promises";
import { isErrno } from "#runtime/failure/errno.ts";
import type { Failure } from "#runtime/failure/failure.ts";
import { LocalFailure, refuseLocally } from "#runtime/failure/local-failure.ts";
import { failureFromFileError } from "./file-errors.ts";

/** Not in Node's list; the same on every architecture that Node runs on. */
const O_PATH = 0o10000000;
const PROC_FILE_SYSTEM = 0x9fa0;
const MAX_PATH_BYTES = 4_095;

/** A place that was checked and is held open: what it is does not change any more. */
export interface HeldPlace extends AsyncDisposable {
  /** Its real path at the time of the check. */
  readonly location: string;
  readonly stats: Stats;
  /** Names it, or what is in it, for further calls to the kernel. */
  readonly link: string;
}

export type Allowed = Awaited<ReturnType<typeof openAllowed>>;

/** Throws `permission_denied` when the policy allows no directory that exists. */
export async function openAllowed(allowedPaths: readonly string[]) {
  const relative = allowedPaths.find((path) => !path.startsWith("/"));
  if (relative !== undefined)
    refuseLocally("failed_precondition", `allowedPaths: ${JSON.stringify(relative)} is not absolute`);
  const roots = (await Promise.all(allowedPaths.map(rootFromPath))).filter((root) => root !== undefined);
  const list = allowedPaths.map((path) => JSON.stringify(path)).join(", ");
  if (roots.length === 0) {
    const words = allowedPaths.length === 0 ? "allows no directory" : `allows only ${list}, which does not exist`;
    refuseLocally("permission_denied", `the policy of this tool ${words}`);
  }
  const isInside = (location: string) => roots.some((root) => location === root || location.startsWith(below(root)));

  function outside(path: string): Failure {
    const text = `${JSON.stringify(path)} is not below the allowed directories (${list}), or a link on its way leads out of them`;
    return new LocalFailure("permission_denied", text);
  }

  /** The absolute form of what the model gave; a relative path counts from the first allowed directory. */
  function absolute(path: string): string {
    if (path === "") refuseLocally("invalid_argument", "path is empty");
    if (path.includes("\0")) refuseLocally("invalid_argument", "path holds a NUL character");
    const whole = path.startsWith("/") ? path : `${allowedPaths[0]}/${path}`;
    if (Buffer.byteLength(whole) > MAX_PATH_BYTES) refuseLocally("invalid_argument", "path is too long");
    return whole;
  }

  /** As `hold`, and undefined when the directory that it would stand in is allowed and nothing is there. */
  async function holdIfThere(path: string, kind: "any" | "directory" = "any"): Promise<HeldPlace | undefined> {
    const whole = absolute(path);
    const flags = kind === "directory" ? constants.O_DIRECTORY : 0;
    const held = await holdPlace(whole, flags).catch(async (error: unknown) => {
      if (!(await leadsInside(whole, isInside))) throw outside(path);
      if (!isErrno(error, "ENOENT")) throw failureFromFileError(error, path);
    });
    if (!held) return undefined;
    if (isInside(held.location) && !(await isOfProcesses(held))) return held;
    await held[Symbol.asyncDispose]();
    throw outside(path);
  }

  /** What the path leads to; the caller disposes it. Rejects with a Failure for the model to read. */
  async function hold(path: string, kind: "any" | "directory" = "any"): Promise<HeldPlace> {
    return (await holdIfThere(path, kind)) ?? refuseLocally("not_found", `there is no ${JSON.stringify(path)}`);
  }

  return { absolute, hold, holdIfThere };
}

async function rootFromPath(path: string): Promise<string | undefined> {
  try {
    return await realpath(path);
  } catch (error) {
    if (isErrno(error, "ENOENT") || isErrno(error, "ENOTDIR")) return undefined;
    throw failureFromFileError(error, path);
  }
}

function below(root: string): string {
  return root === "/" ? root : `${root}/`;
}

/** PATH1, PATH2. */
async function holdPlace(path: string, flags: number): Promise<HeldPlace> {
  const handle = await open(path, O_PATH | flags);
  try {
    const link = `/proc/self/fd/${handle.fd}`;
    const [location, stats] = await Promise.all([readlink(link), handle.stat()]);
    return { location, stats, link, [Symbol.asyncDispose]: () => handle.close() };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** Files of `/proc` tell what processes hold, secrets in their environment too: they are inside of nothing. */
async function isOfProcesses(held: HeldPlace): Promise<boolean> {
  return (await statfs(held.link)).type === PROC_FILE_SYSTEM;
}

/** PATH4: whether the part of the path that exists lies inside, and does not end in a link that leads nowhere. */
async function leadsInside(path: string, isInside: (location: string) => boolean): Promise<boolean> {
  for (let rest = path; rest !== ""; rest = rest.slice(0, rest.lastIndexOf("/"))) {
    const name = rest.replace(/\/+$/, "");
    const held = await holdPlace(name || "/", 0).catch(() => undefined); // not there either: its directory decides
    if (held) {
      await held[Symbol.asyncDispose]();
      return isInside(held.location);
    }
    await using unfollowed = await holdPlace(name || "/", constants.O_NOFOLLOW).catch(() => undefined); // likewise
    if (unfollowed) return false;
  }
  return false;
}
