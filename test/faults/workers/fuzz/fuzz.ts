import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRandom } from "../../random.ts";
import { type Reading, readByInspector, readByUv, writePackages } from "./readers.ts";
import { textFromRandom } from "./texts.ts";

export interface FuzzOptions {
  readonly uv: string;
  readonly seed: number;
  readonly files: number;
  readonly onProgress: (line: string) => void;
}

export interface FuzzResult {
  readonly files: number;
  readonly takenByBoth: number;
  readonly refusedByBoth: number;
  /** With words, so that nobody is misled. */
  readonly stricter: readonly Difference[];
  /** Offered, and uv refuses to read it. */
  readonly laxer: readonly Difference[];
  /** Both take it, and read different packages. */
  readonly readDifferently: readonly Difference[];
}

export interface Difference {
  readonly text: string;
  readonly uv: Reading;
  readonly ours: Reading;
}

const AT_ONCE = 2;
const BATCH = 50;

/** Has the same files read by uv and by the pool's inspector. */
export async function runFuzz({ uv, seed, files, onProgress }: FuzzOptions): Promise<FuzzResult> {
  await using stack = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), "toolbus-fuzz-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const options = { uv, packages: join(directory, "packages") };
  await mkdir(options.packages);
  await writePackages(options, ["alpha", "beta"]);
  const random = createRandom(seed);
  const texts = [...new Set(Array.from({ length: files }, () => textFromRandom(random)))];
  const read: Difference[] = [];
  for (let start = 0; start < texts.length; start += BATCH) {
    const batch = texts.slice(start, start + BATCH);
    const paths = batch.map((_, index) => join(directory, `tool_${start + index}.py`));
    await Promise.all(batch.map((text, index) => writeFile(paths[index]!, text)));
    const [ours, uvs] = await Promise.all([readByInspector(paths, options), inTurn(paths, options)]);
    read.push(...batch.map((text, index) => ({ text, uv: uvs[index]!, ours: ours[index]! })));
    onProgress(`fuzz: ${read.length} of ${texts.length} files`);
  }
  return judged(read);
}

async function inTurn(paths: readonly string[], options: Parameters<typeof readByUv>[1]): Promise<Reading[]> {
  const readings: Reading[] = [];
  const waiting = paths.entries();
  const take = async () => {
    for (const [index, path] of waiting) readings[index] = await readByUv(path, options);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, take));
  return readings;
}

function judged(read: readonly Difference[]): FuzzResult {
  const of = (uv: Reading["kind"], ours: Reading["kind"]) =>
    read.filter((one) => one.uv.kind === uv && one.ours.kind === ours);
  const both = of("taken", "taken");
  return {
    files: read.length,
    takenByBoth: both.length,
    refusedByBoth: of("refused", "refused").length,
    stricter: of("taken", "refused"),
    laxer: of("refused", "taken"),
    readDifferently: both.filter(({ uv, ours }) => isOther(uv, ours)),
  };
}

function isOther(uv: Reading, ours: Reading): boolean {
  if (uv.kind !== "taken" || ours.kind !== "taken" || !uv.packages || !ours.packages) return false;
  return uv.packages.join() !== ours.packages.join();
}
