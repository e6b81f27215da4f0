import { InvalidArgumentError } from "commander";

const UNITS_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A time as one writes it: so long ago, or a date. */
export function pastTime(text: string): Date {
  const [, count, unit] = /^(\d+)([smhd])$/.exec(text) ?? [];
  const date = new Date(unit === undefined ? Date.parse(text) : Date.now() - Number(count) * (UNITS_MS[unit] ?? 0));
  if (Number.isNaN(date.getTime())) throw new InvalidArgumentError("expected one like 10m, 2h or 2026-11-21T12:00:00Z");
  return date;
}
