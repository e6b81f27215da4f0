import type { ClientCall, OutageHistory, Strike, StrikeKind, Violation } from "./history.ts";

/*
 * What a client may see while instances and the broker are struck.
 *
 * E1  A call that was made when a silence had lasted for 3 s has its result, whatever its effect: the silent instance gets none. A strike
 *     that leaves every process its time and its way (an orderly stop, clocks apart, large calls) costs no call its result.
 *     The MCP servers of a silent bridge have to be started elsewhere, for which there are 3 s more. A broker's node that is killed costs
 *     no call its result from 15 s on, however long it stays away.
 * E2  A pure call has its result, also if it was made before; only its way to a silent tool-router may be lost, and its MCP server away.
 * E3  A call that may happen once happens once at most. With its result, it has happened.
 * E4  What is lost is said to be lost, and in time.
 * E5  A tool of an instance that is away is not said to be none.
 * E6  Nobody canceled anything, so nothing is said to be canceled.
 * E7  While the broker stores nothing, calls end within 10 s, and say why, as `/healthz` does after 15 s.
 * E8  Large calls do not end for lack of room, need no more than 1.5 GiB in any service, and keep others waiting for 3 s at most; or for
 *     three times what 99 of 100 calls take in this run while nothing happens, where the machine is so slow (SEC-5 asks for no more).
 */

interface Terms {
  /** So long from its beginning, calls may be lost; without end while the broker stores nothing. */
  readonly unnoticedMs: number;
  /** And those of MCP servers whose bridge is struck. */
  readonly startMs?: number;
  /** The longest that a call takes which is under way. */
  readonly toldWithinMs: number;
  /** Whether pure calls may be lost, too. */
  readonly losesPure: (strike: Strike) => boolean;
}

export const NOTICED_AFTER_MS = 3_000;
/** So long after an instance is back, calls that were under way may still be told as lost. */
const AFTERMATH_MS = 1_000;
const HEALTH_AFTER_MS = 15_000;
const LARGEST_RSS_BYTES = 1.5 * 1024 ** 3;

const ofRouter = ({ instance }: Strike) => instance.startsWith("tool-router");
const silent: Terms = { unnoticedMs: NOTICED_AFTER_MS, startMs: 3_000, toldWithinMs: 8_000, losesPure: ofRouter };
const harmless: Terms = { unnoticedMs: 0, toldWithinMs: 8_000, losesPure: () => false };
/** Leaders are elected, and tools listed again. */
const withoutNode: Terms = { unnoticedMs: 15_000, toldWithinMs: 10_000, losesPure: () => true };
const away: Terms = { unnoticedMs: Number.POSITIVE_INFINITY, toldWithinMs: 10_000, losesPure: () => true };

const termsByKind: Readonly<Record<StrikeKind, Terms>> = {
  freeze: silent,
  cut: silent,
  break: silent,
  stop: harmless,
  clock: harmless,
  large: { ...harmless, toldWithinMs: 3_000 },
  "silence of all": { ...away, toldWithinMs: 30_000 },
  disk: away,
  node: withoutNode,
  nodes: away,
};

/** Rules of which a machine without time for its processes may be the reason. */
const RULES_OF_TIME = new Set(["E1", "E2", "E4"]);
/** So long after a stall, what was late by it may be told. */
const AFTER_STALL_MS = 5_000;

export function checkOutages({ calls, strikes, health, stalls }: OutageHistory): Violation[] {
  const calmMs = 3 * calmP99(calls, strikes);
  const ofCalls = calls.flatMap((call) => {
    const during = strikes.filter(
      ({ fromMs, toMs, wellAtMs }) => call.toMs >= fromMs && call.fromMs <= Math.max(wellAtMs, toMs + AFTERMATH_MS),
    );
    const isStalled = stalls.some(({ fromMs, toMs }) => call.toMs >= fromMs && call.fromMs <= toMs + AFTER_STALL_MS);
    return RULES.flatMap(([rule, faultOf]) => {
      if (isStalled && RULES_OF_TIME.has(rule)) return [];
      const what = faultOf(call, during, calmMs);
      return what === undefined ? [] : [{ rule, key: `${call.tool} ${call.key}`, what: `${what}: ${toldBy(call)}` }];
    });
  });
  return [...ofCalls, ...strikes.flatMap((strike) => [...faultsOfHealth(strike, health), ...faultsOfRoom(strike)])];
}

/** What 99 of 100 calls of this run take that are over before a strike begins or made after all is well. */
function calmP99(calls: readonly ClientCall[], strikes: readonly Strike[]): number {
  const calm = calls.filter((call) => !strikes.some((one) => call.toMs >= one.fromMs && call.fromMs <= one.wellAtMs));
  const took = calm.map(({ fromMs, toMs }) => toMs - fromMs).sort((one, other) => one - other);
  return took[Math.floor(took.length * 0.99)] ?? 0;
}

/** `calmMs` is three times what a call takes while nothing happens. */
type Rule = (call: ClientCall, during: readonly Strike[], calmMs: number) => string | undefined;

const isPure = ({ tool }: ClientCall) => tool.endsWith("_pure");
const isOfBridge = ({ tool }: ClientCall, { instance }: Strike) =>
  tool.startsWith("mcp_") && instance.startsWith("mcp-bridge");
const isOfBroker = ({ kind }: Strike) => kind === "disk" || kind === "nodes";

const RULES: readonly (readonly [string, Rule])[] = [
  [
    "E1",
    (call, during) =>
      call.told.kind === "result" || during.some((strike) => isEarly(call, strike))
        ? undefined
        : "has no result, though nothing was to be lost any more",
  ],
  [
    "E2",
    (call, during) => {
      const mayBeLost = during.some(
        (strike) => termsByKind[strike.kind].losesPure(strike) || (isOfBridge(call, strike) && isEarly(call, strike)),
      );
      return isPure(call) && call.told.kind === "fault" && !mayBeLost ? "is pure and has no result" : undefined;
    },
  ],
  ["E3", (call) => (!isPure(call) && call.effects > 1 ? `happened ${call.effects} times` : undefined)],
  [
    "E3", // a sub-agent may say what it has, though its call was lost
    ({ tool, told, effects }) =>
      told.kind === "result" && effects === 0 && tool !== "agent" ? "has a result and did not happen" : undefined,
  ],
  ["E3", ({ told, key }) => (told.kind === "result" && told.key !== key ? "has the result of another" : undefined)],
  [
    "E4",
    (call) =>
      !isPure(call) &&
      call.told.kind === "fault" &&
      call.effects > 0 &&
      !/outcome_unknown|unavailable/.test(call.told.text)
        ? "happened, and is not told as unknown"
        : undefined,
  ],
  [
    "E4",
    ({ tool, fromMs, toMs, isLarge }, during, calmMs) => {
      const outage = during.find(isOfBroker);
      if (isLarge || (tool === "agent" && outage)) return undefined; // a run waits for a broker as long as it takes
      const steps = tool === "agent" ? 2 : 1; // it has a call of its own
      const slowMs = during.some(({ kind }) => kind === "large") ? calmMs : 0; // E8
      const withinMs =
        steps * Math.max(...during.map(({ kind }) => termsByKind[kind].toldWithinMs), harmlessMs(during), slowMs);
      const tookMs = toMs - Math.max(fromMs, outage?.fromMs ?? 0);
      return tookMs > withinMs ? `was told after ${Math.round(tookMs)} ms` : undefined;
    },
  ],
  ["E5", ({ told }) => (told.kind === "fault" && /There is no tool/.test(told.text) ? "is none" : undefined)],
  ["E6", ({ told }) => (told.kind === "fault" && /cancel/i.test(told.text) ? "was canceled by nobody" : undefined)],
  [
    "E7",
    ({ told, fromMs, toMs }, during) => {
      const isAway = during.some((strike) => isOfBroker(strike) && fromMs > strike.fromMs && toMs < strike.toMs);
      const saysWhy = told.kind === "result" || /quorum|disk|connection|outcome_unknown/.test(told.text);
      return isAway && !saysWhy ? "does not say why" : undefined;
    },
  ],
  ["E8", ({ told, isLarge }) => (isLarge && told.kind === "fault" ? "is large and has no result" : undefined)],
];

/** Whether the call was made when it could still be lost. */
function isEarly(call: ClientCall, strike: Strike): boolean {
  const { unnoticedMs, startMs = 0 } = termsByKind[strike.kind];
  if (unnoticedMs === 0) return false;
  return call.fromMs < strike.fromMs + unnoticedMs + (isOfBridge(call, strike) ? startMs : 0);
}

/** Large calls are to delay others less than what else may happen does. */
function harmlessMs(during: readonly Strike[]): number {
  return during.length > 0 ? 0 : harmless.toldWithinMs;
}

function faultsOfHealth(strike: Strike, health: OutageHistory["health"]): Violation[] {
  if (!isOfBroker(strike)) return [];
  const { kind: key, fromMs, toMs, wellAtMs } = strike;
  const isTold = health.some(
    ({ atMs, status, text }) =>
      atMs > fromMs && atMs < fromMs + HEALTH_AFTER_MS && status === 503 && /quorum|disk/.test(text),
  );
  const isWell = health.some(({ atMs, status }) => atMs > toMs && atMs < wellAtMs && status === 200);
  return [
    ...(isTold ? [] : [{ rule: "E7", key, what: "/healthz did not say in time that nothing can be stored" }]),
    ...(isWell ? [] : [{ rule: "E7", key, what: "/healthz did not say in time that all is well again" }]),
  ];
}

function faultsOfRoom({ kind: key, rssBytes = {} }: Strike): Violation[] {
  const large = Object.entries(rssBytes).filter(([, bytes]) => bytes > LARGEST_RSS_BYTES);
  return large.map(([instance, bytes]) => ({
    rule: "E8",
    key,
    what: `${instance} needed ${Math.round(bytes / 1024 ** 2)} MiB`,
  }));
}

function toldBy({ told }: ClientCall): string {
  return told.kind === "result" ? "a result" : told.text.slice(0, 300);
}
