import type { OwnerState } from "../entries/ping.ts";

type Phase = { kind: "opening" } | { kind: "open" } | { kind: "closing"; closed: Promise<void> };

/** A key that this instance owns, or believes to own while that is being verified. */
export interface Holding<R> {
  readonly key: string;
  readonly revision: number;
  readonly state: OwnerState;
  /** How the opening went, whatever came after it. */
  readonly opened: Promise<R>;
  /** Closes the resource, after its opening if need be; never rejects. */
  close(): Promise<void>;
  stopAnswering(): void;
}

export interface HoldingOptions<R> {
  key: string;
  revision: number;
  open: () => Promise<R>;
  stopAnswering: () => void;
  onOpenFailed: () => void;
  onError: (error: unknown, key: string) => void;
}

export function openHolding<R extends AsyncDisposable>(options: HoldingOptions<R>): Holding<R> {
  const { key, revision, stopAnswering } = options;
  let phase: Phase = { kind: "opening" };
  const opened = options.open();

  opened.then(
    () => {
      if (phase.kind === "opening") phase = { kind: "open" };
    },
    () => {
      if (phase.kind === "opening") options.onOpenFailed(); // the failure itself reaches whoever waits for the resource
    },
  );

  const closeResource = async () => {
    const resource = await opened.catch(() => undefined); // one that did not open has nothing to close
    try {
      await resource?.[Symbol.asyncDispose]();
    } catch (error) {
      options.onError(error, key);
    }
  };

  return {
    key,
    revision,
    opened,
    stopAnswering,
    get state() {
      return phase.kind;
    },
    close() {
      if (phase.kind === "closing") return phase.closed;
      const closed = closeResource();
      phase = { kind: "closing", closed };
      return closed;
    },
  };
}
