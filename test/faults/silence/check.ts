import type { ClientCall, SilenceHistory, Strike, Violation } from "./history.ts";

/*
 * What a client may see while one of two instances is silent.
 *
 * E1  A call that was made when the silence had lasted for 3 s has its result, whatever its effect: the silent instance gets none.
 * E2  A pure call has its result, also if it was made before; only its way to a silent tool-router may be lost.
 * E3  A call that may happen once happens once at most. With its result, it has happened.
 * E4  What is lost is said to be lost, and within 8 s.
 * E5  A tool of an instance that is away is not said to be none.
 */

export const NOTICED_AFTER_MS = 3_000;
const TOLD_WITHIN_MS = 8_000;
/** So long after an instance is back, calls that were under way may still be told as lost. */
const AFTERMATH_MS = 1_000;

export function checkSilence({ calls, strikes }: SilenceHistory): Violation[] {
  return calls.flatMap((call) => {
    const during = strikes.filter(({ fromMs, toMs }) => call.toMs >= fromMs && call.fromMs <= toMs + AFTERMATH_MS);
    return RULES.flatMap(([rule, faultOf]) => {
      const what = faultOf(call, during);
      return what === undefined ? [] : [{ rule, key: `${call.tool} ${call.key}`, what: `${what}: ${toldBy(call)}` }];
    });
  });
}

type Rule = (call: ClientCall, during: readonly Strike[]) => string | undefined;

const RULES: readonly (readonly [string, Rule])[] = [
  [
    "E1",
    ({ told, fromMs }, during) => {
      if (told.kind === "result") return undefined;
      const isEarly = during.some((strike) => fromMs < strike.fromMs + NOTICED_AFTER_MS);
      return isEarly ? undefined : "has no result, though the silence had to be known";
    },
  ],
  [
    "E2",
    ({ tool, told }, during) => {
      const mayBeLost = during.some(({ instance }) => instance.startsWith("tool-router"));
      return tool === "pure" && told.kind === "fault" && !mayBeLost ? "is pure and has no result" : undefined;
    },
  ],
  ["E3", ({ tool, effects }) => (tool === "at_most_once" && effects > 1 ? `happened ${effects} times` : undefined)],
  [
    "E3",
    ({ told, effects }) => (told.kind === "result" && effects === 0 ? "has a result and did not happen" : undefined),
  ],
  ["E3", ({ told, key }) => (told.kind === "result" && told.key !== key ? "has the result of another" : undefined)],
  [
    "E4",
    ({ tool, told, effects }) =>
      tool === "at_most_once" && told.kind === "fault" && effects > 0 && !/outcome_unknown|unavailable/.test(told.text)
        ? "happened, and is not told as unknown"
        : undefined,
  ],
  [
    "E4",
    ({ fromMs, toMs }) =>
      toMs - fromMs > TOLD_WITHIN_MS ? `was told after ${Math.round(toMs - fromMs)} ms` : undefined,
  ],
  ["E5", ({ told }) => (told.kind === "fault" && /There is no tool/.test(told.text) ? "is none" : undefined)],
];

function toldBy({ told }: ClientCall): string {
  return told.kind === "result" ? "a result" : told.text.slice(0, 300);
}
