/**
 * One run, watched from all sides until it is over. What happens to it at its point is the plan's.
 *
 * S1  The point is reached once: the first time that it comes, or the first one in the turn that the plan names.
 * S2  What is seen on the wire may be lost to a fault before it is seen: what matters is learned from watchers, too.
 */

import type { RunEvent } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { until } from "#runtime/time/until.ts";
import type { Verdict } from "../../harness/proxy/nats-proxy.ts";
import type { FaultyService } from "../processes/faulty-service.ts";
import type { Effect, PromptMessage, Seen } from "./history/history.ts";
import type { ModelStage, ProviderFault, Turnout } from "./peers/model-server.ts";
import type { Point } from "./plan/points.ts";
import type { Script } from "./plan/script.ts";
import type { WireMoment } from "./wire.ts";
import type { RunEyes, World } from "./world.ts";

/** A place that the run has reached. `held` stands on the wire until the fault has happened. */
export interface Reached {
  readonly point: Point;
  readonly victim: FaultyService;
  readonly held: "sent" | "stored" | undefined;
}

export interface SubjectOptions {
  readonly world: World;
  readonly token: string;
  readonly sessionId: string;
  readonly script: Script;
  /** The turn in which points of a turn are reached. */
  readonly turn: number;
  /** The tool whose effect is the point of effects. */
  readonly tool: string;
  /** Told of each place, whether it is the point or not; what it gives becomes of what is held. */
  readonly onReached: (reached: Reached) => Promise<Verdict> | undefined;
  readonly onParked: (callIds: readonly string[]) => void;
  /** The model was asked, so the run has read its inbox. */
  readonly onAsked?: () => void;
}

export interface Subject extends RunEyes {
  readonly effects: readonly Effect[];
  readonly prompts: readonly PromptMessage[][];
  readonly runId: string;
  readonly epoch: number;
  readonly hasEnded: boolean;
  readonly holder: FaultyService | undefined;
  readonly router: FaultyService | undefined;
  /** Keeps the answers of all tools but the first ones back until it resolves, or until another process has the run: nobody may hear them then. */
  keepAnswers(until: Promise<unknown>, but: number): void;
  onSeen(seen: Seen): void;
  /** The next word that an append is stored is dropped, or the next append sent twice, or the model fails. */
  later(deed: "drop" | "twice" | ProviderFault, onDone: () => void): void;
  /** A fault of the provider that has had no occasion. */
  readonly pending: { fault: ProviderFault; onDone: () => void } | undefined;
}

export function createSubject(options: SubjectOptions): Subject {
  const { world, token, sessionId, script, onReached } = options;
  const effects: Effect[] = [];
  const prompts: PromptMessage[][] = [];
  const reclaimed = Promise.withResolvers<void>();
  const onWireDeeds: { deed: "drop" | "twice"; onDone: () => void }[] = [];
  let pending: Subject["pending"];
  let runId = "";
  const claimsAt = new Set<number>();
  let turns = 0;
  let results = 0;
  let hasEnded = false;
  let holder: FaultyService | undefined;
  let router: FaultyService | undefined;
  let answersWait: { until: Promise<unknown>; but: number } | undefined;
  let textSeenInTurn = 0;

  /** S2 */
  function learn({ event, sequence, runId: id }: RunEvent): void {
    runId = id;
    if (event.case === "claimed") {
      claimsAt.add(sequence);
      if (claimsAt.size > 1) reclaimed.resolve();
    }
    if (event.case === "ended") hasEnded = true;
    if (event.case === "parked") options.onParked(event.value.calls.map(({ callId }) => callId));
    if (event.case === "turnCommitted") turns = Math.max(turns, event.value.turn);
  }

  function onWire(moment: WireMoment, service: FaultyService): Verdict | Promise<Verdict> {
    if (moment.kind === "listing") {
      if (runId === "") return "pass"; // its creation asks for the tools that it names
      holder ??= service; // it asks while its claim is stored
      if (service !== holder || turns + 1 < options.turn) return "pass";
      return onReached({ point: "before the model call", victim: service, held: undefined }) ?? "pass";
    }
    const { event } = moment.event;
    runId = moment.event.runId;
    if (moment.kind === "stored") {
      if (event.case === "claimed") holder = service;
      if (event.case === "turnCommitted") results = 0;
      if (event.case === "callFinished") results += 1;
      learn(moment.event);
    }
    const deed = moment.kind === "stored" ? "drop" : "twice";
    const index = onWireDeeds.findIndex((due) => due.deed === deed);
    const [due] = index >= 0 ? onWireDeeds.splice(index, 1) : [];
    due?.onDone();
    if (due !== undefined) return deed;
    const point = pointOf(moment);
    return (point && onReached({ point, victim: service, held: moment.kind })) ?? "pass";
  }

  function pointOf({ kind, event: { event }, epoch }: Exclude<WireMoment, { kind: "listing" }>): Point | undefined {
    if (kind === "sent") {
      return event.case === "turnCommitted" && event.value.turn >= options.turn ? "before commit" : undefined;
    }
    switch (event.case) {
      case "accepted":
        return "after accept";
      case "claimed":
        return epoch === 1 ? "after claim" : "during recovery";
      case "turnCommitted":
        return event.value.turn >= options.turn ? "after commit" : undefined;
      case "callFinished":
        if (results === 1) return "some calls done";
        return results === script.turns[turns - 1]?.calls.length ? "recorded" : undefined;
      case "parked":
        return "parked";
      case "cancelRequested":
        return "canceling";
      case "ended":
        return "terminal written, not sent";
      default:
        return undefined;
    }
  }

  function takePending(stage: ModelStage): Turnout {
    if (pending === undefined || (pending.fault === "429" && stage !== "asked")) return undefined;
    const { fault, onDone } = pending;
    pending = undefined;
    onDone();
    return fault;
  }

  async function onStage(stage: ModelStage, { turn, instance }: { turn: number; instance: string }): Promise<Turnout> {
    const victim = world.orchestrators.find((one) => one.instance === instance);
    if (stage === "asked") options.onAsked?.();
    if (stage !== "asked" && victim !== undefined && turn >= options.turn) {
      const point = stage === "text" ? "in mid text" : "in mid arguments";
      if (stage === "text") await until(() => textSeenInTurn >= turn, { timeoutMs: 1_000 }).catch(() => {}); // watchers may be cut off
      await onReached({ point, victim, held: undefined });
    }
    return takePending(stage);
  }

  async function onEffect(effect: Effect): Promise<void> {
    effects.push(effect);
    const wait = answersWait;
    if (effect.tool === options.tool && holder !== undefined) {
      await onReached({ point: "effect done, not recorded", victim: holder, held: undefined });
    }
    const answered = [...new Set(effects.map(({ key }) => key))].slice(0, wait?.but); // also when one is repeated
    if (wait !== undefined && !answered.includes(effect.key)) await Promise.race([wait.until, reclaimed.promise]);
  }

  return {
    token,
    sessionId,
    script,
    effects,
    prompts,
    get runId() {
      return runId;
    },
    get epoch() {
      return claimsAt.size;
    },
    get hasEnded() {
      return hasEnded;
    },
    get holder() {
      return holder;
    },
    get router() {
      return router;
    },
    get pending() {
      return pending;
    },
    onWire,
    onStage,
    onEffect,
    onCall(brought) {
      router = brought;
    },
    onPrompt: (messages) => prompts.push(messages),
    onSeen(seen) {
      if (seen.kind === "event") learn(seen.event);
      if (seen.kind === "delta" && seen.delta.delta.case === "text") textSeenInTurn = seen.delta.turn;
    },
    keepAnswers(waits, but) {
      answersWait = { until: waits, but };
    },
    later(deed, onDone) {
      if (deed === "drop" || deed === "twice") onWireDeeds.push({ deed, onDone });
      else pending = { fault: deed, onDone };
    },
  };
}
