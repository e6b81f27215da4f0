import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, link, mkdir, open, rename, rm } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { z } from "zod";
import { Effect } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { isErrno } from "#runtime/failure/errno.ts";
import type { Failure } from "#runtime/failure/failure.ts";
import { LocalFailure, refuseLocally } from "#runtime/failure/local-failure.ts";
import { type Allowed, type HeldPlace, openAllowed } from "../allowed.ts";
import { defineBuiltIn } from "../built-in.ts";
import { failureFromFileError, refuseUnlessFile } from "../file-errors.ts";

// A file is replaced by another one that takes its name, so that no reader sees a part. If the service is killed in between, a
// file `.toolbus-…` may stay beside it. A file with several names (hard links) is replaced, and never appended to. Whoever the
// policy is meant against must not be able to write into the directories above an allowed one. Only regular files are written.

const MAX_BYTES = 16 * 1024 * 1024;
const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_APPEND } = constants;

type Mode = "replace" | "create" | "append";

/** A name in a directory that was checked, and what stands there. */
interface Target extends AsyncDisposable {
  directory: HeldPlace;
  name: string;
  standing: HeldPlace | undefined;
}

export const fsWrite = defineBuiltIn({
  name: "fs_write",
  description:
    "Writes a file. It is replaced as a whole: whoever reads it sees the old content or the new one, never a part. A relative path counts from the first allowed directory.",
  effect: Effect.AT_MOST_ONCE,
  arguments: z.strictObject({
    path: z.string().min(1).describe("The file, absolute or relative to the first allowed directory."),
    content: z.string().describe("What to write, in the form that `encoding` names."),
    encoding: z.enum(["utf8", "base64"]).default("utf8"),
    mode: z
      .enum(["replace", "create", "append"])
      .default("replace")
      .describe("`create` refuses a file that exists; `append` adds to its end, or begins it."),
    createDirectories: z
      .boolean()
      .default(false)
      .describe("Whether to make the directories of the path that are missing."),
    permissions: z
      .string()
      .regex(/^0?[0-7]{3}$/)
      .optional()
      .describe("Octal, like 640; what the file has, or the machine's default, unless told."),
  }),
  async run({ path, content, encoding, mode, createDirectories, permissions }, { policy }) {
    const bytes = bytesFrom(content, encoding);
    const allowed = await openAllowed(policy.allowedPaths);
    try {
      await using target = await openTarget(allowed, path, createDirectories);
      const { standing, directory, name } = target;
      if (standing) refuseUnlessFile(standing.stats, path);
      if (standing && mode === "create") refuseLocally("already_exists", `${JSON.stringify(path)} exists already`);
      const chosen = permissions === undefined ? undefined : Number.parseInt(permissions, 8);
      if (standing && mode === "append") await append(standing, bytes, { path, permissions: chosen });
      else await place(target, bytes, { permissions: chosen, mode });
      return { path: `${directory.location}/${name}`, bytes: bytes.length, created: standing === undefined };
    } catch (error) {
      throw failureFromFileError(error, path);
    }
  },
});

function bytesFrom(content: string, encoding: "utf8" | "base64"): Buffer {
  const bytes = Buffer.from(content, encoding);
  const isBase64 = encoding === "utf8" || bytes.toString("base64").replace(/=+$/, "") === content.replace(/=+$/, "");
  if (!isBase64) refuseLocally("invalid_argument", "content is no base64");
  if (bytes.length > MAX_BYTES)
    refuseLocally(
      "invalid_argument",
      `content has ${bytes.length} bytes, over the limit of ${MAX_BYTES}: write it in parts with "mode":"append"`,
    );
  return bytes;
}

/** Where a link leads is written to, and the link stays. */
async function openTarget(allowed: Allowed, path: string, createsDirectories: boolean): Promise<Target> {
  const standing = await allowed.holdIfThere(path);
  if (!standing) return openAbsent(allowed, path, createsDirectories);
  await using stack = new AsyncDisposableStack();
  stack.use(standing);
  if (standing.stats.isDirectory())
    refuseLocally("failed_precondition", `${JSON.stringify(path)} is a directory, not a file`);
  const directory = stack.use(await allowed.hold(dirname(standing.location), "directory"));
  if (standing.stats.nlink === 0 || directory.location !== dirname(standing.location)) throw movedMeanwhile(path);
  const owned = stack.move();
  const name = basename(standing.location);
  return { directory, name, standing, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

async function openAbsent(allowed: Allowed, path: string, createsDirectories: boolean): Promise<Target> {
  const whole = allowed.absolute(path);
  const at = whole.lastIndexOf("/");
  const name = whole.slice(at + 1);
  if (name === "" || name === "." || name === "..")
    refuseLocally("invalid_argument", `${JSON.stringify(path)} names a directory, not a file`);
  const directory = await openDirectory(allowed, whole.slice(0, at) || "/", createsDirectories);
  return { directory, name, standing: undefined, [Symbol.asyncDispose]: () => directory[Symbol.asyncDispose]() };
}

/** Each missing directory is made in one that was checked, and checked before the next is made in it. */
async function openDirectory(allowed: Allowed, path: string, createsMissing: boolean): Promise<HeldPlace> {
  const held = await allowed.holdIfThere(path);
  if (held?.stats.isDirectory()) return held;
  await held?.[Symbol.asyncDispose]();
  if (held) refuseLocally("failed_precondition", `${JSON.stringify(path)} is not a directory`);
  if (!createsMissing)
    refuseLocally("not_found", `there is no directory ${JSON.stringify(path)}: make it with "createDirectories":true`);
  const at = path.lastIndexOf("/");
  const name = path.slice(at + 1);
  if (name === "." || name === "..")
    refuseLocally("invalid_argument", `${JSON.stringify(path)} leads through what is not there`);
  await using parent = await openDirectory(allowed, path.slice(0, at) || "/", true);
  if (name !== "") {
    await mkdir(`${parent.link}/${name}`).catch((error: unknown) => {
      if (!isErrno(error, "EEXIST")) throw error; // somebody else was quicker
    });
  }
  return allowed.hold(`${parent.location}/${name}`, "directory");
}

function movedMeanwhile(path: string): Failure {
  return new LocalFailure("aborted", `${JSON.stringify(path)} was moved while it was opened: try again`);
}

/** A file beside the target that takes its name once it is whole; a link or file of that name gives way, nobody follows it. */
async function place(
  { directory, name, standing }: Target,
  bytes: Buffer,
  { permissions, mode }: { permissions: number | undefined; mode: Mode },
): Promise<void> {
  const temporary = `${directory.link}/.toolbus-${randomBytes(9).toString("hex")}`;
  const chosen = permissions ?? (standing && standing.stats.mode & 0o777);
  try {
    await using file = await open(
      temporary,
      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
      chosen === undefined ? 0o666 : 0o600,
    );
    await file.writeFile(bytes);
    if (standing) await keepOwner(file, standing);
    if (chosen !== undefined) await file.chmod(chosen);
    await file.datasync();
    await takeName(temporary, `${directory.link}/${name}`, mode);
  } finally {
    await rm(temporary, { force: true });
  }
}

/** A name that was free is taken only if it still is, unless what stands there is to be replaced anyway. */
async function takeName(temporary: string, name: string, mode: Mode): Promise<void> {
  if (mode === "replace") await rename(temporary, name);
  else await link(temporary, name);
}

async function keepOwner(file: FileHandle, { stats }: HeldPlace): Promise<void> {
  await file.chown(stats.uid, stats.gid).catch((error: unknown) => {
    if (!isErrno(error, "EPERM")) throw error; // only root may give files away: the service's user owns it then
  });
}

/** In place, so not through a hard link: its other name may stand outside. */
async function append(
  { link: held, stats }: HeldPlace,
  bytes: Buffer,
  { path, permissions }: { path: string; permissions: number | undefined },
): Promise<void> {
  await using file = await open(held, O_WRONLY | O_APPEND | O_NONBLOCK);
  if (stats.nlink !== 1 || (await file.stat()).nlink !== 1)
    refuseLocally(
      "failed_precondition",
      `${JSON.stringify(path)} has several names (hard links): replace it instead of appending`,
    );
  await file.writeFile(bytes);
  if (permissions !== undefined) await file.chmod(permissions);
  await file.datasync();
}
