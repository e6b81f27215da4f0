// Runs a case against a subject under test.

import type { NatsConnection } from "nats";
import type { Step, Verb, WireCase } from "./case-file.ts";
import { CaseRun, type SubjectAddress } from "./case-run.ts";
import * as client from "./steps/client-steps.ts";
import * as frames from "./steps/frame-steps.ts";
import * as server from "./steps/server-steps.ts";

const firstCall = "a";

type Deed<V extends Verb> = (run: CaseRun, name: string, step: NonNullable<Step[V]>) => Promise<void>;

const deeds: { readonly [V in Verb]: Deed<V> } = {
  open: server.open,
  cancel: server.cancel,
  note: server.note,
  no_note: server.noNote,
  serve: server.serve,
  stop: server.stop,
  gone: server.gone,
  start: client.start,
  request: client.request,
  end_requests: (run, name) => client.tell(run, name, "end"),
  read: (run, name) => client.tell(run, name, "read"),
  abort: (run, name) => client.tell(run, name, "abort"),
  opening: client.opening,
  no_opening: client.noOpening,
  canceled: client.canceled,
  outcome: client.outcome,
  send: frames.send,
  receive: frames.receive,
  receive_status: frames.receiveStatus,
  receive_message: frames.receiveMessage,
  send_message: frames.sendMessage,
  nothing: frames.nothing,
  no_credit: frames.noCredit,
  mute: async (run, name) => {
    run.call(name).isMute = true;
    run.acted();
  },
  leave: async (run, name) => {
    run.call(name).leave();
    run.acted();
  },
};

/** Resolves when the case holds; throws with the step that it failed at. */
export async function runCase(connection: NatsConnection, wireCase: WireCase, address: SubjectAddress): Promise<void> {
  await using run = new CaseRun(connection, wireCase, address);
  await run.begin();
  for (const [index, step] of wireCase.steps.entries()) {
    const [verb] = Object.keys(step).filter((key) => key !== "of") as [Verb];
    try {
      await (deeds[verb] as Deed<Verb>)(run, step.of ?? firstCall, step[verb] as never);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      throw new Error(`step ${index + 1} (${verb}): ${message}`, { cause: error });
    }
  }
  run.assertNoFaults();
}
