/** One measured number. `baseline` is what it is compared with, measured in the same run; `ratio` is value by baseline. */
export interface BenchResult {
  bench: string;
  metric: string;
  value: number;
  unit: string;
  baseline: number | null;
  ratio: number | null;
}

export function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? upper) + upper) / 2;
}

/** Compares the medians of two series. */
export function comparedResult(
  name: { bench: string; metric: string; unit: string },
  values: readonly number[],
  baselines?: readonly number[],
): BenchResult {
  const value = medianOf(values);
  const baseline = baselines ? medianOf(baselines) : null;
  const ratio = baseline === null ? null : rounded(value / baseline);
  return { ...name, value: rounded(value), baseline: baseline === null ? null : rounded(baseline), ratio };
}

export function rounded(value: number): number {
  return Number(value.toPrecision(4));
}
