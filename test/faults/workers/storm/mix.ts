import type { Random } from "../../random.ts";

/** What comes of a call whose worker lives. */
type Ending =
  | { readonly kind: "result"; readonly times?: number }
  /** The text that the tool's error begins with, `NONCE` for the call's own. */
  | { readonly kind: "error"; readonly text: string }
  /** The worker dies of it. */
  | { readonly kind: "crash" }
  /** The worker dies of it after the first answer, which may not have come through. */
  | { readonly kind: "result or crash" }
  | { readonly kind: "deadline" };

export interface Act {
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly ending: Ending;
  readonly deadlineMs?: number;
  /** The caller leaves so long after its question. */
  readonly leavesAfterMs?: number;
}

interface Kind {
  /** Of some thousand calls. */
  readonly share: number;
  readonly act: (random: Random) => Act;
}

const result: Ending = { kind: "result" };
const crash: Ending = { kind: "crash" };
const seconds = (random: Random) => ({ seconds: Math.round(random.next() * 20) / 1_000 });
const simple = (tool: string, ending: Ending) => (): Act => ({ tool, args: {}, ending });

/** The largest result of the pool that is tried. */
export const LIMIT_BYTES = 2 ** 21;
const TOO_BIG = 150_000;

const frames = [
  "no frame at all\n",
  '{"id":999999,"result":"another\'s","error":null}\n',
  '{"id":0,"result":1,"error":null}\n',
  '{"id":1.5,"error":"x"}\n',
  '{"id":-1,"progress":{"done":1}}\n',
  '{"id":ID}\n',
  '[{"id":ID,"result":1}]\n',
  "{}\n",
  "\u0000\n",
];

const kinds: readonly Kind[] = [
  { share: 330, act: simple("plain", result) },
  { share: 150, act: simple("talk", result) },
  { share: 80, act: simple("threads", result) },
  { share: 150, act: (random) => ({ tool: "rest", args: seconds(random), ending: result }) },
  { share: 100, act: (random) => ({ tool: "rest_async", args: seconds(random), ending: result }) },
  { share: 60, act: simple("fail", { kind: "error", text: "ValueError: NONCE" }) },
  { share: 15, act: simple("leave", { kind: "error", text: "SystemExit: NONCE" }) },
  { share: 20, act: () => ({ tool: "big", args: { count: 40_000 }, ending: { kind: "result", times: 40_000 } }) },
  {
    share: 8,
    act: () => ({ tool: "big", args: { count: TOO_BIG }, ending: { kind: "error", text: "the result has " } }),
  },
  { share: 15, act: simple("no_json", { kind: "error", text: "the result is not JSON" }) },
  { share: 12, act: simple("fork", result) },
  {
    share: 40,
    act: (random) => ({
      tool: random.pick(["rest", "rest_async"]),
      args: { seconds: 0.02 },
      ending: result,
      leavesAfterMs: random.next() * 25,
    }),
  },
  {
    share: 5,
    act: () => ({ tool: "rest_async", args: { seconds: 60 }, ending: { kind: "deadline" }, deadlineMs: 300 }),
  },
  { share: 1, act: () => ({ tool: "rest", args: { seconds: 60 }, ending: { kind: "deadline" }, deadlineMs: 300 }) },
  { share: 1, act: simple("exit_process", crash) },
  { share: 1, act: simple("kill", crash) },
  { share: 1, act: simple("crash", crash) },
  { share: 1, act: simple("close_output", crash) },
  { share: 1, act: (random) => ({ tool: "write_frame", args: { frame: random.pick(frames) }, ending: crash }) },
  { share: 1, act: simple("answer_twice", { kind: "result or crash" }) },
];

const all = kinds.reduce((sum, { share }) => sum + share, 0);

export function actFromRandom(random: Random): Act {
  let left = random.next() * all;
  for (const { share, act } of kinds) {
    left -= share;
    if (left < 0) return act(random);
  }
  return simple("plain", result)();
}

/** One of each kind. */
export function eachAct(random: Random): Act[] {
  return kinds.map(({ act }) => act(random));
}
