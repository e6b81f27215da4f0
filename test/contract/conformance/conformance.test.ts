// The cases of docs/connect-over-nats/cases/, against our two ends and against those of the independent peer.

import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { pathOfSeed } from "#runtime/bus/credentials/directory.ts";
import { findUv } from "#runtime/bus/nats-server/find/find-uv.ts";
import { openOurSubject } from "../../../examples/wire-conformance/subject/ours.ts";
import type { Subject } from "../../../examples/wire-conformance/subject/subject.ts";
import { observeCommand } from "../../../tools/gen/command.ts";
import { type BothEnds, openBothEnds } from "../two-ends/testing/both-ends.ts";
import { readCases } from "./case-file.ts";
import { openPeerSubject } from "./testing/peer-subject.ts";

const examples = fileURLToPath(new URL("../../../examples/wire-conformance/", import.meta.url));
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

/** What the runner says of each case: "pass", or what is wrong. */
async function verdictsOn(control: string): Promise<Map<string, string>> {
  const { url, login, credentials } = ends.bus.server;
  const bus = ["--bus", url, "--nkey", pathOfSeed(credentials, login.name), "--control", control, "--service", control];
  const { output } = await observeCommand(await findUv(), ["run", "python/runner.py", ...bus], { cwd: examples });
  const verdicts = output.matchAll(/^(pass|FAIL|----) {2}(.+?)(?: {2}.+)?$(?:\n {6}(.+))?/gm);
  const byCase = new Map([...verdicts].map(([, verdict = "", name = "", fault]) => [name, fault ?? verdict]));
  if (byCase.size < cases.length) throw new Error(`not every case has a verdict:\n${output}`);
  return byCase;
}

describe.each(subjects)("BUS-2 the cases of the wire, with %s ends", (name, openSubject) => {
  let verdicts: Map<string, string>;

  beforeAll(async () => {
    const control = `conformance-${name.split(" ").length}`;
    stack.use(await openSubject(control));
    verdicts = await verdictsOn(control);
  });

  it.each(cases.map(({ side, name }) => [side, name] as const))("the %s holds the case: %s", (side, name) => {
    expect(verdicts.get(`${side}: ${name}`)).toBe("pass");
  });
});
