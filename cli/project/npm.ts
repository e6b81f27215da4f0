import { basename } from "node:path";
import { commandLineOf } from "#runtime/bus/nats-server/process-identity.ts";

const NPM_IS_ASKED_MS = 500;

/**
 * npm that is told to stop ends, and passes no signal on: `npx toolbus up` that a supervisor ends would leave the suite behind. Whatever
 * npm starts has its variables, so it is looked whether it started this process, itself or by a shell: a program between them may
 * leave the suite behind on purpose.
 */
export function onLossOfNpm(lost: () => void): void {
  if (process.env.npm_command === undefined) return;
  const parent = process.ppid;
  if (!isNpm(commandLineOf(parent) ?? "")) return;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    lost();
  }, NPM_IS_ASKED_MS).unref();
}

/** Also of pnpm, which sets the same variable. */
export function isNpm(commandLine: string): boolean {
  const [program = "", ...words] = commandLine.split(" ");
  if (/^(\S*\/)?(ba|da|z|k)?sh$/.test(program)) return words[0] === "-c";
  return [program, words[0] ?? ""].some((word) => /^(npm|npx|pnpm)(-cli)?(\.c?js)?$/.test(basename(word)));
}
