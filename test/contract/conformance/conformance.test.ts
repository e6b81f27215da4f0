// The cases of docs/connect-over-nats/cases/, against our two ends and against those of the independent peer.

import type { NatsConnection } from "nats";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openOurSubject } from "../../../examples/wire-conformance/subject/ours.ts";
import type { Subject } from "../../../examples/wire-conformance/subject/subject.ts";
import { type BothEnds, openBothEnds } from "../both-ends.fixture.ts";
import { readCases, type WireCase } from "./case-file.ts";
import { openPeerSubject } from "./peer-subject.fixture.ts";
import { runCase } from "./runner.ts";

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

/** Runs the cases a few at a time, since many of them wait for seconds. */
function runAll(connection: NatsConnection, control: string): Map<WireCase, Promise<string | undefined>> {
  const lanes = Array.from({ length: atOnce }, () => Promise.resolve());
  return new Map(
    cases.map((wireCase, index) => {
      const lane = index % atOnce;
      const outcome = (lanes[lane] ?? Promise.resolve()).then(() =>
        runCase(connection, wireCase, { control, service: control }).then(
          () => undefined,
          (error: Error) => error.message,
        ),
      );
      lanes[lane] = outcome.then(() => {});
      return [wireCase, outcome];
    }),
  );
}

describe.each(subjects)("BUS-2 the cases of the wire, with %s ends", (name, openSubject) => {
  let outcomes: Map<WireCase, Promise<string | undefined>>;

  beforeAll(async () => {
    const control = `conformance-${name.split(" ").length}`;
    const subject = stack.use(await openSubject(control));
    await subject.obey({ do: "serve", service: control });
    outcomes = runAll(await ends.connectPeer(), control);
  });

  it.each(cases.map((wireCase) => [wireCase.side, wireCase.name, wireCase] as const))(
    "%s: %s",
    async (_side, _name, wireCase) => {
      expect(await outcomes.get(wireCase)).toBeUndefined();
    },
  );
});
