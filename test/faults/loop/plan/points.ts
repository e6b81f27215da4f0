/** Where in a run's life a fault comes, and what it is. */

export const points = {
  "after accept": "the run is stored, its creator not yet told",
  "after claim": "the claim is stored, the claimer not yet told",
  "before the model call": "tools are being listed for the model",
  "in mid text": "half of an answer's text has come, and a client has seen some",
  "in mid arguments": "half of a call's arguments has come",
  "before commit": "the turn is on its way to the store",
  "after commit": "the turn is stored, its writer not yet told",
  "some calls done": "one of a turn's calls has its result, the others are under way",
  "effect done, not recorded": "the tool has acted and not yet answered",
  recorded: "the last result of a turn is stored, its writer not yet told",
  parked: "that the run waits is stored, its writer not yet told; outputs come at once",
  canceling: "the request to cancel is stored, the end not yet",
  "terminal written, not sent": "the end is stored, and nobody told",
  "ended with news": "likewise, and an event has come into the inbox meanwhile: a run of its own has to take it",
  "during recovery": "its process was killed, and another one has just claimed the run",
} as const;

export const faults = {
  "kill -9": "of the process at the point (for calls sometimes the router), which starts again",
  SIGSTOP: "of that process, past the lease, and back",
  "broker kill": "kill -9 of nats-server, started again on its store",
  "broker freeze": "SIGSTOP of nats-server, and back",
  "spaces kill -9": "of spaces, which start again",
  "spaces SIGSTOP": "of spaces, for longer than they are waited for, and back",
  "routers SIGSTOP": "of both routers, likewise",
  "lost acknowledgement": "the answer to the append at the point, or to the next one, is dropped",
  "duplicate delivery": "two more wakes, the client's request again, and the next append twice on the wire",
  "provider 429": "the next request to the model is refused, with Retry-After",
  "provider stall": "the model's stream, at the point or the next one, falls silent",
  "provider reset": "likewise, its connection is reset",
  "provider garbage": "likewise, what comes is no answer",
} as const;

export type Point = keyof typeof points;
export type Fault = keyof typeof faults;

export const allPoints = Object.keys(points) as Point[];
export const allFaults = Object.keys(faults) as Fault[];

export interface Pair {
  readonly point: Point;
  readonly fault: Fault;
}

export const allPairs: readonly Pair[] = allPoints.flatMap((point) => allFaults.map((fault) => ({ point, fault })));

export function nameOf({ point, fault }: Pair): string {
  return `${point} × ${fault}`;
}

/** Faults that hit more than one run: one at a time in a suite, so that each is known for what it is. */
export function isDisruptive({ point, fault }: Pair): boolean {
  return point === "during recovery" || disruptive.has(fault);
}

const disruptive: ReadonlySet<Fault> = new Set<Fault>([
  ...(["kill -9", "SIGSTOP", "spaces kill -9", "spaces SIGSTOP", "routers SIGSTOP"] as const),
  ...(["broker kill", "broker freeze"] as const),
]);
