// A confined child, by bubblewrap (`bwrap`). It
//
// - sees, signals and traces no process but those that it starts itself: its `/proc` is that of a namespace of its own, and all
//   that is in there ends with it, whatever group or session it has gone to;
// - finds private directories empty and private files closed, and cannot write where the suite's own programs and files lie;
// - cannot move a directory above any of these: at the next start another one would lie under the protected name;
// - gets no rights that its user has not (`no_new_privs`), and none of root's, and no devices of root's.
//
// `bwrap` itself stays, outside, as our child. SIGKILL to it ends all of them. SIGTERM would too, and leave the program no time: that
// goes to the group inside (`innerGroup` in `gate.ts`).
//
// The network and all other files are those of its user. A child with `writable` writes there and to a `/tmp` of its own only.

import { realpathSync, statSync } from "node:fs";
import { constants, tmpdir } from "node:os";
import { dirname } from "node:path";

/** How the children of a service are confined. */
export interface Confinement {
  /** The path of `bwrap`. */
  readonly program: string;
  /** Files and directories that no child sees. */
  readonly privatePaths: readonly string[];
  readonly readOnlyPaths: readonly string[];
}

/** What one child needs of it. */
export interface ChildConfinement extends Confinement {
  /** Directories in private ones that this child works with; it can read them. */
  readonly visible?: readonly string[];
  /** The only directories that this child may write to; unless told, it may write where its user may. */
  readonly writable?: readonly string[];
}

/** The descriptor that `bwrap` tells on which process is the first of the namespace, and leads a group of its own. */
export const INFO_DESCRIPTOR = 4;

/** The command around a program, which is to be started with `isConfining` (`gate.ts`). */
export function confined<C extends { executable: string; args: readonly string[] }>(
  command: C,
  confinement: ChildConfinement,
): C & { isConfining: true } {
  const { executable, args } = command;
  const words = wordsOf(confinement, executable);
  return {
    ...command,
    executable: confinement.program,
    args: [...words, "--", executable, ...args],
    isConfining: true,
  };
}

function wordsOf(confinement: ChildConfinement, executable: string): string[] {
  const { program, privatePaths, readOnlyPaths, visible = [], writable } = confinement;
  const isRoot = process.getuid?.() === 0;
  const writes = real(writable ?? ["/"]);
  const held = above(real([program, ...privatePaths, ...readOnlyPaths])).filter((path) =>
    writes.some((one) => path !== one && isBelow(path, one)),
  );
  const hidden = outermost(real([...privatePaths, "/run/user"])); // the sockets there run commands for whoever is the user
  const emptied = hidden.filter(isDirectory);
  const read = [dirname(executable), ...visible].filter((path) => hidden.some((one) => isBelow(path, one)));
  return [
    ...["--die-with-parent", "--new-session", "--unshare-pid", "--unshare-ipc", "--cap-drop", "ALL"],
    ...["--info-fd", String(INFO_DESCRIPTOR)],
    ...(writable ? ["--ro-bind", "/", "/", "--tmpfs", tmpdir()] : ["--bind", "/", "/"]),
    ...(writable ? bound("--bind", writes) : []), // before `/proc` and `/dev`: an allowed `/` would bring back those of the machine
    ...bound("--bind", held), // what something is mounted at stays where it is
    // Root owns the disks, on which every file can be read. By shared memory a service that starts is handed its secrets.
    ...(isRoot
      ? ["--dev", "/dev"]
      : ["--dev-bind", "/dev", "/dev", ...real(["/dev/shm"]).flatMap((path) => ["--tmpfs", path])]),
    ...["--proc", "/proc"],
    ...(isRoot ? bound("--ro-bind", real(["/proc/sys", "/sys"])) : []), // root's, whatever its rights: they rule the machine
    ...(writable && isBelow(executable, tmpdir()) ? bound("--ro-bind", [dirname(executable)]) : []),
    ...bound("--ro-bind", real([program, ...readOnlyPaths])),
    ...emptied.flatMap((path) => ["--tmpfs", path]),
    ...hidden.filter((path) => !isDirectory(path)).flatMap((path) => ["--ro-bind", "/dev/null", path]),
    ...bound("--ro-bind", real(read)),
    ...emptied.flatMap((path) => ["--remount-ro", path]),
  ];
}

const bound = (how: string, paths: readonly string[]) => paths.flatMap((path) => [how, path, path]);

/** The directories above the paths, the outermost first, without the root. */
function above(paths: readonly string[]): string[] {
  const found = new Set<string>();
  for (const path of paths) {
    for (let directory = dirname(path); directory !== "/"; directory = dirname(directory)) found.add(directory);
  }
  return [...found].sort((one, other) => one.length - other.length);
}

/** Those that are there, by the paths that they have without links. */
function real(paths: readonly string[]): string[] {
  const found = paths.flatMap((path) => {
    try {
      return [realpathSync(path)];
    } catch {
      return []; // there is nothing to hide
    }
  });
  return [...new Set(found)];
}

/** What lies below another one is hidden with it, and is no place any more that anything could be mounted at. */
function outermost(paths: readonly string[]): string[] {
  return paths.filter((path) => !paths.some((other) => other !== path && isBelow(path, other)));
}

function isBelow(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory === "/" ? "/" : `${directory}/`);
}

function isDirectory(path: string): boolean {
  return statSync(path).isDirectory();
}

const signals = Object.entries(constants.signals) as [NodeJS.Signals, number][];

/** `bwrap` tells the signal that ended the program as shells do, in its own code. */
export function exitOfConfined(exit: { code: number | null; signal: NodeJS.Signals | null }): typeof exit {
  const [signal] = signals.find(([, number]) => exit.code === 128 + number) ?? [];
  return signal === undefined ? exit : { code: null, signal };
}
