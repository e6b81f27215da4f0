export type KeyedChanges = ReturnType<typeof createKeyedChanges>;

/** Tells those who wait for a key that it changed. What changed they read themselves. */
export function createKeyedChanges() {
  const waitersByKey = new Map<string, Set<() => void>>();

  function tell(key: string): void {
    const waiters = waitersByKey.get(key);
    waitersByKey.delete(key);
    for (const wake of waiters ?? []) wake();
  }

  return {
    tell,
    /** Some may have been missed: tells all who wait. */
    tellAll: () => [...waitersByKey.keys()].forEach(tell),
    /** Resolves at the next change after this call. Disposing ends the waiting. */
    next(key: string): Disposable & { readonly happened: Promise<void> } {
      const { promise, resolve } = Promise.withResolvers<void>();
      const waiters = waitersByKey.get(key) ?? new Set();
      waitersByKey.set(key, waiters.add(resolve));
      return {
        happened: promise,
        [Symbol.dispose]() {
          waiters.delete(resolve);
          if (waiters.size === 0 && waitersByKey.get(key) === waiters) waitersByKey.delete(key);
        },
      };
    },
  };
}
