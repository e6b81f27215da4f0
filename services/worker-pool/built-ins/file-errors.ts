import type { Stats } from "node:fs";
import { Failure } from "#runtime/failure/failure.ts";
import { LocalFailure } from "#runtime/failure/local-failure.ts";

const WORDS: Readonly<Record<string, string>> = {
  EACCES: "the service has no permission for it",
  EPERM: "the service has no permission for it",
  EROFS: "it is on a file system that is read-only",
  ENOSPC: "the disk is full",
  EDQUOT: "the disk quota is used up",
  EISDIR: "it is a directory",
  ENOTDIR: "a part of the path is a file and not a directory",
  ENOENT: "it is not there",
  EEXIST: "it exists already",
  ELOOP: "its links lead in a circle",
  ENAMETOOLONG: "a name in it is too long",
  ENOTEMPTY: "it is a directory",
  ETXTBSY: "it is a program that runs",
  EIO: "the disk failed",
};

/** What the kernel refused, in words for a model: the kernel's own name our descriptors. */
export function failureFromFileError(error: unknown, path: string): Failure {
  if (error instanceof Failure) return error;
  const { code } = error as NodeJS.ErrnoException;
  const words = WORDS[code ?? ""] ?? (code === undefined ? "it failed" : `it failed with ${code}`);
  return new LocalFailure("failed_precondition", `${JSON.stringify(path)}: ${words}`, { cause: error });
}

function kindOf(stats: Stats): string {
  if (stats.isFile()) return "file";
  if (stats.isDirectory()) return "directory";
  if (stats.isFIFO()) return "FIFO";
  if (stats.isSocket()) return "socket";
  if (stats.isCharacterDevice() || stats.isBlockDevice()) return "device";
  return "special file";
}

export function refuseUnlessFile(stats: Stats, path: string): void {
  if (!stats.isFile())
    throw new LocalFailure("failed_precondition", `${JSON.stringify(path)} is a ${kindOf(stats)}, not a file`);
}
