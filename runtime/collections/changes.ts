/** Tells whoever waits that something is different; what it is, they look up themselves. */
export interface Changes {
  tell(): void;
  /** Take it before looking, so that no change falls between. */
  next(): NextChange;
}

/** Disposing ends the waiting: a promise that many wait for would hold each of them until it is resolved. */
interface NextChange extends Disposable {
  readonly happened: Promise<void>;
}

export function createChanges(): Changes {
  const waiting = new Set<() => void>();
  return {
    tell() {
      for (const resolve of waiting) resolve();
      waiting.clear();
    },
    next() {
      const { promise: happened, resolve } = Promise.withResolvers<void>();
      waiting.add(resolve);
      return { happened, [Symbol.dispose]: () => void waiting.delete(resolve) };
    },
  };
}
