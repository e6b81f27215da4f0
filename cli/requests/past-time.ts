import { InvalidArgumentError } from "commander";

const UNITS_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A time as one writes it: so long ago, or a date. */
export function pastTime(text: string): Date {
  const spanMs = spanFrom(text);
  const date = new Date(spanMs === undefined ? Date.parse(text) : Date.now() - spanMs);
  if (Number.isNaN(date.getTime())) throw new InvalidArgumentError("expected one like 10m, 2h or 2026-11-21T12:00:00Z");
  return date;
}

/** A span of time as one writes it, in milliseconds. */
export function timeSpan(text: string): number {
  const spanMs = spanFrom(text);
  if (!spanMs) throw new InvalidArgumentError("expected one like 30m, 2h or 1d");
  return spanMs;
}

function spanFrom(text: string): number | undefined {
  const [, count, unit] = /^(\d+)([smhd])$/.exec(text) ?? [];
  return unit === undefined ? undefined : Number(count) * (UNITS_MS[unit] ?? 0);
}
