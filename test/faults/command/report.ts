import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface Figure {
  readonly metric: string;
  readonly value: number;
  readonly unit?: string;
  /** What the value must not exceed, or not fall below; absent where it is only told. */
  readonly most?: number;
  readonly least?: number;
}

export function isBroken({ value, most, least }: Figure): boolean {
  return (most !== undefined && value > most) || (least !== undefined && value < least);
}

/** Prints them, as a table or a line of JSON each; gives whether all are as they must be. */
export function reportFigures(fault: string, figures: readonly Figure[], { json }: { json: boolean }): boolean {
  if (json) for (const figure of figures) console.log(JSON.stringify({ fault, ...figure }));
  else console.table(figures);
  return !figures.some(isBroken);
}

const TOLD = 20;

/** Prints the first violations, and the path of a file with all that is known of them. */
export async function reportViolations(run: string, violations: readonly string[], known: object): Promise<void> {
  if (violations.length === 0) return;
  for (const violation of violations.slice(0, TOLD)) console.error(`VIOLATION ${violation}`);
  const path = join(tmpdir(), `toolbus-faults-${run}.json`);
  await writeFile(path, JSON.stringify(known, null, 2));
  console.error(`${violations.length} violations; what is known of them stands in ${path}`);
}

/** For a run in which a part was taken away: gives whether the checker has found that. */
export function reportFinding(violations: readonly unknown[]): boolean {
  const isFound = violations.length > 0;
  console.error(isFound ? "the checker found it" : "the checker found nothing");
  return isFound;
}
