// The cases of docs/connect-over-nats/cases/, against our two ends and against those of the independent peer.

import type { NatsConnection } from "nats";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openOurSubject } from "../../../examples/wire-conformance/subject/ours.ts";
import type { Subject } from "../../../examples/wire-conformance/subject/subject.ts";
import { type BothEnds, openBothEnds } from "../two-ends/testing/both-ends.ts";
import { readCases, type WireCase } from "./case-file.ts";
import { runCase } from "./runner.ts";
import { openPeerSubject } from "./testing/peer-subject.ts";

const atOnce = 12;
const cases = readCases();
const stack = new AsyncDisposableStack();
let ends: BothEnds;

beforeAll(async () => {
  ends = stack.use(await openBothEnds());
});
afterAll(() => stack.disposeAsync());

const subjects: [string, (control: string) => Promise<Subject>][] = [
  ["our", async (control) => openOurSubject((await ends.bus.connect()).connection, control)],
  ["the independent peer's", async (control) => openPeerSubject(await ends.connectPeer(), control)],
];

/** Runs the cases a few at a time, since many of them wait for seconds, and then the large ones by themselves. */
async function runAll(connection: NatsConnection, control: string): Promise<Map<WireCase, string | undefined>> {
  const faults = new Map<WireCase, string | undefined>();
  const runOneByOne = async (queue: WireCase[]) => {
    for (let next = queue.shift(); next; next = queue.shift()) {
      const wireCase = next;
      await runCase(connection, wireCase, { control, service: control }).then(
        () => faults.set(wireCase, undefined),
        (error: Error) => faults.set(wireCase, error.message),
      );
    }
  };
  const small = cases.filter(({ isLarge }) => !isLarge);
  await Promise.all(Array.from({ length: atOnce }, () => runOneByOne(small)));
  await runOneByOne(cases.filter(({ isLarge }) => isLarge));
  return faults;
}

describe.each(subjects)("BUS-2 the cases of the wire, with %s ends", (name, openSubject) => {
  let faults: Map<WireCase, string | undefined>;

  beforeAll(async () => {
    const control = `conformance-${name.split(" ").length}`;
    const subject = stack.use(await openSubject(control));
    await subject.obey({ do: "serve", service: control });
    faults = await runAll(await ends.connectPeer(), control);
  });

  it.each(cases.map((wireCase) => [wireCase.side, wireCase.name, wireCase] as const))(
    "the %s holds the case: %s",
    (_side, _name, wireCase) => {
      expect(faults.has(wireCase)).toBe(true);
      expect(faults.get(wireCase)).toBeUndefined();
    },
  );
});
