import { isErrno } from "../../failure/errno.ts";
import { comesWithin } from "../../time/comes-within.ts";
import type { ChildExit } from "./exit.ts";
import type { GatedProcess } from "./gate.ts";
import { killMarked, type Mark } from "./marked.ts";
import { closedWithin, letGoOfOutput } from "./output.ts";
import { unwatchGroup } from "./watchdog.ts";

/** For the last words of a child whose stderr is held open by a descendant out of reach. */
const STDERR_GRACE_MS = 200;

export interface GroupEndOptions {
  endInput: () => void;
  stderrTail: () => string;
  mark: Mark | undefined;
  inputGraceMs: number;
  terminationGraceMs: number;
}

/** How a child and its group end, by themselves or because they are told to: child-1, child-2 and child-3 of `./child-process.ts`. */
export class GroupEnd {
  /** Resolves when the process has exited and its group is killed; never rejects. */
  readonly exited: Promise<ChildExit>;
  readonly #pid: number;
  readonly #innerGroup: () => number | undefined;
  readonly #options: GroupEndOptions;
  #hasExited = false;
  #closing: Promise<ChildExit> | undefined;

  constructor(child: GatedProcess, options: GroupEndOptions) {
    this.#pid = child.pid;
    this.#innerGroup = child.innerGroup;
    this.#options = options;
    this.exited = this.#afterExit(child);
  }

  get hasExited(): boolean {
    return this.#hasExited;
  }

  /** SIGKILL to the group, at once. */
  kill(): Promise<ChildExit> {
    if (!this.#hasExited) signalGroup(this.#pid, "SIGKILL");
    return this.exited;
  }

  /** Ends stdin, waits, SIGTERM to the group, waits, SIGKILL to the group. */
  close(): Promise<ChildExit> {
    this.#closing ??= this.#climbDown();
    return this.#closing;
  }

  async #afterExit({ pid, exit, stdout, stderr }: GatedProcess): Promise<ChildExit> {
    const { code, signal } = await exit;
    this.#hasExited = true; // child-3
    signalGroup(pid, "SIGKILL"); // child-2
    unwatchGroup(pid);
    if (this.#options.mark) await killMarked(this.#options.mark);
    letGoOfOutput(stdout);
    await closedWithin(STDERR_GRACE_MS, stderr);
    return { code, signal, stderrTail: this.#options.stderrTail() };
  }

  async #climbDown(): Promise<ChildExit> {
    const { inputGraceMs, terminationGraceMs } = this.#options;
    this.#options.endInput();
    if (await comesWithin(inputGraceMs, this.exited)) return this.exited;
    signalGroup(this.#innerGroup() ?? this.#pid, "SIGTERM");
    if (await comesWithin(terminationGraceMs, this.exited)) return this.exited;
    return this.kill();
  }
}

/** child-1. A group that is gone is what a signal to it was for, or came before it. */
function signalGroup(group: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-group, signal);
  } catch (error) {
    if (!isErrno(error, "ESRCH") && !isErrno(error, "EPERM")) throw error;
  }
}
