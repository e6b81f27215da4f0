import { createChanges, looksAt } from "#runtime/collections/changes.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { timeoutSignal } from "#runtime/time/timeout-signal.ts";
import { isSettled, type Phase, type ReadyPhase } from "./phase.ts";

const MAX_WORDS = 200;
const BETWEEN_WORDS_MS = 200;

/** Where a connection stands at the moment, for its one writer and all who wait for it to be different. */
export class CurrentPhase {
  readonly changes = createChanges();
  /** When the phase, or what was found in it, changed last. */
  changedAtMs = Date.now();
  readonly #onChange: () => void;
  #value: Phase;
  #failedAttempts = 0;
  #told: NodeJS.Timeout | undefined;

  constructor(onChange: () => void, installer: string | undefined) {
    this.#onChange = onChange;
    this.#value = { kind: "connecting", ...(installer !== undefined && { installer }) };
  }

  get value(): Phase {
    return this.#value;
  }

  enter(phase: Phase): void {
    this.#value = phase;
    this.tell();
  }

  /** What was found in the phase is different. */
  tell(): void {
    this.changedAtMs = Date.now();
    this.changes.tell();
    this.#onChange();
  }

  /** What a server says while it starts, but for lines without a word; told now and then, as it may say much. */
  note(text: string): void {
    const phase = this.#value;
    if (phase.kind !== "connecting" || !/[\p{L}\p{N}]/u.test(text)) return;
    phase.lastWords = text.trim().slice(0, MAX_WORDS);
    if (this.#told !== undefined) return;
    this.#told = setTimeout(() => {
      this.#told = undefined;
      if (this.#value === phase) this.tell();
    }, BETWEEN_WORDS_MS).unref();
  }

  noteFailedAttempt(): void {
    this.#failedAttempts += 1;
  }

  /** Resolves when there is something to say about the server. */
  async settled(signal: AbortSignal): Promise<void> {
    for await (const _ of looksAt(this.changes, signal)) if (isSettled(this.#value)) return;
  }

  /** The ready phase; undefined as soon as an attempt has failed, none can come within the time, or `closing` aborts. */
  async ready(timeoutMs: number, signal: AbortSignal, closing: AbortSignal): Promise<ReadyPhase | undefined> {
    const current = this.#value;
    if (current.kind === "ready") return current;
    const limitMs = performance.now() + timeoutMs;
    const failedBefore = this.#failedAttempts;
    using time = timeoutSignal(timeoutMs);
    using ending = openEnding(signal, closing, time);
    try {
      for await (const _ of looksAt(this.changes, ending.signal)) {
        const phase = this.#value;
        if (phase.kind === "ready") return phase;
        const isTooFar = phase.kind === "waiting" && phase.untilMs > limitMs;
        if (phase.kind === "closed" || isTooFar || this.#failedAttempts > failedBefore) return undefined;
      }
    } catch (error) {
      if (signal.aborted) throw error;
    }
    return undefined;
  }
}
