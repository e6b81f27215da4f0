interface RefreshOptions {
  work: () => Promise<void>;
  onError: (error: unknown) => void;
  /** Requests within that time of each other are one; 100 ms unless told. */
  quietMs?: number;
  /** A storm of requests does not put the work off for longer; 1 s unless told. */
  maxWaitMs?: number;
}

/**
 * Does the work some time after it was asked for: quiet first, but not for ever; one at a time; what is requested during the work is
 * worth another turn.
 */
export function createRefresh(options: RefreshOptions) {
  const { work, onError, quietMs = 100, maxWaitMs = 1_000 } = options;
  let timer: NodeJS.Timeout | undefined;
  let requestedAt: number | undefined;
  let isWorking = false;
  let isDisposed = false;

  function request(): void {
    if (isDisposed) return;
    requestedAt ??= performance.now();
    if (isWorking) return;
    const leftMs = maxWaitMs - (performance.now() - requestedAt);
    clearTimeout(timer);
    timer = setTimeout(() => void run(), Math.max(0, Math.min(quietMs, leftMs)));
  }

  async function run(): Promise<void> {
    requestedAt = undefined;
    isWorking = true;
    try {
      await work();
    } catch (error) {
      onError(error);
    }
    isWorking = false;
    if (requestedAt !== undefined) request();
  }

  return {
    request,
    [Symbol.dispose]() {
      isDisposed = true;
      clearTimeout(timer);
    },
  };
}
