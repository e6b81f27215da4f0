/** Tells whoever waits that something is different; what it is, they look up themselves. */
export interface Changes {
  tell(): void;
  /** Resolves at the next change. Take it before looking, so that no change falls between. */
  next(): Promise<void>;
}

export function createChanges(): Changes {
  let coming = Promise.withResolvers<void>();
  return {
    tell() {
      const { resolve } = coming;
      coming = Promise.withResolvers<void>();
      resolve();
    },
    next: () => coming.promise,
  };
}
