const MAX_CLOSEST = 3;
/** Longer names are compared by their beginning: a refusal costs little, whatever was asked for. */
const MAX_COMPARED = 64;

/** Of things that have several spellings, the names of those that are spelled like a name, the nearest first. */
export function nearest(name: string, candidates: Iterable<{ name: string; spellings: readonly string[] }>): string[] {
  const wanted = comparable(name);
  const near: { name: string; distance: number }[] = [];
  for (const { name: candidate, spellings } of candidates) {
    const others = new Set(spellings.map(comparable));
    const distance = Math.min(...Array.from(others, (other) => distanceBetween(wanted, other)));
    if (distance < 1) near.push({ name: candidate, distance });
  }
  return near
    .sort((a, b) => a.distance - b.distance || a.name.localeCompare(b.name))
    .slice(0, MAX_CLOSEST)
    .map((one) => one.name);
}

/** Case, separators and the form of a reference make no difference. */
function comparable(name: string): string {
  return name
    .slice(0, 2 * MAX_COMPARED)
    .toLowerCase()
    .replace(/__[0-9a-f]{16}$/, "")
    .replace(/[^\p{L}\p{N}]+/gu, "")
    .slice(0, MAX_COMPARED);
}

/** From 0, the same, to 1, not alike: edits for each letter that may be wrong, which is every fourth. */
function distanceBetween(wanted: string, other: string): number {
  if (wanted === other) return 0;
  const length = Math.max(wanted.length, other.length);
  const isPart = Math.min(wanted.length, other.length) >= 4 && (wanted.includes(other) || other.includes(wanted));
  if (isPart) return 0.5 + (0.4 * Math.abs(wanted.length - other.length)) / length;
  const allowed = Math.max(1, Math.floor(length / 4));
  return Math.abs(wanted.length - other.length) > allowed ? 1 : editsBetween(wanted, other, allowed) / (allowed + 1);
}

/** Letters that are wrong, missing, too many or swapped: optimal string alignment, a row at a time. `most + 1` for more than `most`. */
function editsBetween(a: string, b: string, most: number): number {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next: number[] = [i, ...Array(b.length).fill(most + 1)];
    let least = i;
    for (let j = Math.max(1, i - most); j <= Math.min(b.length, i + most); j++) {
      const replaced = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swapped = isSwapped ? before[j - 2]! + 1 : replaced;
      next[j] = Math.min(row[j]! + 1, next[j - 1]! + 1, replaced, swapped);
      least = Math.min(least, next[j]!);
    }
    if (least > most) return most + 1;
    before = row;
    row = next;
  }
  return row[b.length]!;
}
