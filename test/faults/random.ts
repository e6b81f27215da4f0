/** Numbers that follow from a seed. */
export interface Random {
  /** From 0 up to, and without, 1. */
  next(): number;
  pick<T>(from: readonly T[]): T;
  shuffled<T>(items: readonly T[]): T[];
}

/** The generator mulberry32. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  function next(): number {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }
  return {
    next,
    pick: (from) => from[Math.floor(next() * from.length)] as (typeof from)[number],
    shuffled(items) {
      const order = [...items];
      for (let index = order.length - 1; index > 0; index--) {
        const other = Math.floor(next() * (index + 1));
        [order[index], order[other]] = [order[other] as (typeof order)[number], order[index] as (typeof order)[number]];
      }
      return order;
    },
  };
}
