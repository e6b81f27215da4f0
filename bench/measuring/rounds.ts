export interface Rounds {
  /** How often each way is measured. */
  readonly rounds: number;
  /** For how long. */
  readonly roundMs: number;
  readonly onProgress: (message: string) => void;
}

/** Measures each way once a round, in alternating order, so that none has always the same one before it. */
export async function measureRounds<Name extends string, Measured>(
  names: readonly Name[],
  { rounds, onProgress }: Pick<Rounds, "rounds" | "onProgress">,
  measure: (name: Name) => Promise<Measured>,
): Promise<Record<Name, Measured[]>> {
  const series = Object.fromEntries(names.map((name) => [name, [] as Measured[]])) as Record<Name, Measured[]>;
  for (let round = 0; round < rounds; round += 1) {
    onProgress(`round ${round + 1} of ${rounds}`);
    for (const name of round % 2 === 0 ? names : names.toReversed()) series[name].push(await measure(name));
  }
  return series;
}
