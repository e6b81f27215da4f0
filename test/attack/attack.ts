/** What an attacker knows: addresses, and the keys that it was given. Its process has nothing else of the suite. */
export interface Ground {
  readonly url: string;
  /** A gateway that wants no key. */
  readonly openUrl: string;
  readonly natsUrl: string;
  /** The seed of a third party that serves a provider. */
  readonly providerSeed: string;
  readonly keys: Readonly<Record<Principal, string>>;
  /** Of people's tokens: a gateway that takes them, and what their issuer says to mallory. */
  readonly jwt: Tokens & { readonly url: string };
  /** How many runs of a principal may be in flight. */
  readonly mostRuns: number;
  /** The parked run of alice's. */
  readonly runId: string;
  /** Stands in everything that is alice's alone, and in secrets of the suite. */
  readonly canary: string;
  /** What no process may show: keys and secrets. */
  readonly secrets: readonly string[];
  /** Where the suite keeps its files, where tools lie, what file tools may touch, and a file of another user. */
  readonly directories: Readonly<Record<"suite" | "files" | "inside" | "ofAnother", string>>;
  readonly isConfined: boolean;
}

export interface Tokens {
  readonly issuer: string;
  readonly audience: string;
  readonly jwksUrl: string;
  /** A good one of mallory's, and some of the issuer's that are for nobody here. */
  readonly own: string;
  readonly misdirected: Readonly<Record<string, string>>;
}

export type Principal = "alice" | "mallory" | "olga";

export interface Attack {
  /** What it tries, as a line of the report. */
  readonly name: string;
  /** Which requirement holds it. */
  readonly requirement: `SEC-${1 | 2 | 3 | 4 | 5 | 6 | 7 | 8}`;
  /** It keeps a core busy for seconds, and so belongs to the long form. */
  readonly isLong?: boolean;
  /** Throws only if it cannot be played: that is a fault of the attack or of the suite, and counts as one. */
  readonly play: (ground: Ground, options: PlayOptions) => Promise<Outcome>;
}

export interface PlayOptions {
  /** Plays what is quick of it, so that all attacks together take less than a minute. */
  readonly isShort: boolean;
  readonly seed: number;
}

export interface Outcome {
  readonly tries: number;
  /** What it got that it must not get, a line each. */
  readonly reached: readonly string[];
}

/** Plays each try, so many at a time; what it gives is what was reached by it. */
export async function tryAll<T>(
  tries: readonly T[],
  play: (one: T) => Promise<string | undefined>,
  atOnce = 16,
): Promise<Outcome> {
  const reached: string[] = [];
  const left = tries.values();
  const next = async () => {
    for (const one of left) {
      const got = await play(one);
      if (got !== undefined) reached.push(got);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, next));
  return { tries: tries.length, reached };
}
