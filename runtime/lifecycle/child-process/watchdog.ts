// What must stay true, so that no process group, and nothing that has left one, outlives this process, not even after SIGKILL:
//
// watchdog-1  The watchdog is a process of its own, in a session of its own: no signal to ours or to a terminal reaches it.
// watchdog-2  It reads our messages from a pipe whose other end only we hold. Our death, of whatever kind, is the end of that pipe,
//     and at its end it kills every group that it knows, and whatever carries our mark (`marked.ts`).
// watchdog-3  A child's program starts only after the watchdog's pipe holds the child's group: the gate (`gate.ts`) waits for a word
//     that is written after the group. A gate whose parent died before reads the end of its pipe and goes.
// watchdog-4  Groups are taken off the list only after they were killed as a whole: a group's id is free for reuse only when
//     its last member is gone, so the watchdog never kills a stranger.
// watchdog-5  A watchdog that is killed itself is replaced, and told all groups again.

import { type ChildProcess, spawn } from "node:child_process";
import { Socket } from "node:net";
import { ASSIGNED } from "./marked.ts";

/** POSIX sh: a megabyte of memory and a millisecond to start, on every machine. */
const SCRIPT = `
trap '' HUP INT TERM
groups=' '
while read -r sign group; do
  case $sign in
    +) groups="$groups$group " ;;
    -) case $groups in *" $group "*) groups="\${groups%% $group *} \${groups#* $group }" ;; esac ;;
  esac
done
for group in $groups; do kill -s KILL -- "-$group" 2>/dev/null; done
round=0
while [ $round -lt 50 ]; do
  killed=
  for environment in $(grep -lF "$1" /proc/[0-9]*/environ 2>/dev/null); do
    pid=\${environment#/proc/}
    kill -s KILL "\${pid%/environ}" 2>/dev/null && killed=1
  done
  [ -n "$killed" ] || break
  round=$((round + 1))
done
`;

const groups = new Set<number>();
let watchdog: ChildProcess | undefined;

/** From here on the group dies with this process. */
export function watchGroup(group: number): void {
  groups.add(group);
  if (watchdog) watchdog.stdin?.write(`+ ${group}\n`);
  else watchdog = openWatchdog();
}

/** To be called once the whole group has been killed. */
export function unwatchGroup(group: number): void {
  if (groups.delete(group)) watchdog?.stdin?.write(`- ${group}\n`);
}

function openWatchdog(): ChildProcess {
  const opened = spawn("/bin/sh", ["-c", SCRIPT, "sh", ASSIGNED], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
    env: {},
    cwd: "/",
  });
  const replace = () => {
    if (watchdog !== opened) return;
    watchdog = groups.size > 0 ? openWatchdog() : undefined;
  };
  opened.once("exit", replace);
  opened.once("error", replace);
  opened.stdin.on("error", () => {}); // a broken pipe means that it is gone, which `exit` tells as well
  opened.stdin.write([...groups].map((group) => `+ ${group}\n`).join(""));
  // It must not keep this process alive: our end is what it waits for.
  opened.unref();
  if (opened.stdin instanceof Socket) opened.stdin.unref();
  return opened;
}
