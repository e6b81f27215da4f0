import { createColors } from "picocolors";

/** Colours only where somebody looks. */
export const colors = createColors(process.stdout.isTTY === true && process.env.NO_COLOR === undefined);

export function printLine(text = ""): void {
  process.stdout.write(`${text}\n`);
}

/** Notes for people, kept apart from the result. */
export function printNote(text: string): void {
  process.stderr.write(`${colors.dim(text)}\n`);
}
