import { create } from "@bufbuild/protobuf";
import { RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { InboxEventSchema } from "#gen/toolbus/space/v1/inbox_pb.ts";
import { until } from "#runtime/time/until.ts";
import { retryRequest } from "../../retry-request.ts";
import type { Violation } from "../history/history.ts";
import { shortScript } from "../plan/script.ts";
import { readLog } from "../run-log.ts";
import { createSubject } from "../subject.ts";
import { agentName, type World } from "../world.ts";

/** An event that comes into the inbox of a session: the result of a call that was answered as pending. */
export interface News extends Disposable {
  /** Resolves when the inbox has it. */
  deliver(): Promise<void>;
  /** TOOL-9: it joins one run, which nobody has to ask for. Gives the runs that started by themselves, too. */
  check(): Promise<{ violations: Violation[]; ownRunIds: string[] }>;
}

const deliverMs = 30_000;
const joinMs = 60_000;

export function openNews(world: World, { token: of, sessionId }: { token: string; sessionId: string }): News {
  const token = `${of}w`;
  const eventId = `tr:${token}`;
  const ignored = { onReached: () => undefined, onParked: () => {} };
  const conversation = createSubject({ world, token, sessionId, script: shortScript, turn: 1, tool: "", ...ignored });
  const watched = world.watch({ ...conversation, sessionId: `${sessionId}w` });
  let delivered: Promise<void> | undefined;

  async function deliver(): Promise<void> {
    const result = { outputJson: JSON.stringify(`[${token}]`) };
    const value = { callId: token, tool: "later", result };
    const event = create(InboxEventSchema, {
      sessionId,
      agent: agentName,
      eventId,
      event: { case: "toolResult", value },
    });
    const ask = () => world.inboxes.deliverEvent({ event }, { timeoutMs: 5_000 });
    await retryRequest(ask, performance.now() + deliverMs);
  }

  async function runs() {
    const list = () => world.runs.listRuns({ sessionId }, { timeoutMs: 5_000 });
    const found = (await retryRequest(list, performance.now() + joinMs)).runs;
    const logs = await Promise.all(found.map(async (run) => ({ run, records: await readLog(world.bus, run.id) })));
    return logs.map(({ run, records }) => ({
      run,
      takes: records.filter(
        ({ event: { event } }) => event.case === "inboxTaken" && event.value.eventIds.includes(eventId),
      ),
    }));
  }

  return {
    deliver: () => (delivered ??= deliver()),
    async check() {
      await world.healthy();
      const isOver = async () => (await runs()).some(({ run, takes }) => takes.length > 0 && isEnded(run.state));
      await until(isOver, { timeoutMs: joinMs, intervalMs: 250 }).catch(() => {}); // told below
      const all = await runs();
      const count = all.reduce((sum, { takes }) => sum + takes.length, 0);
      const violations =
        count === 1 ? [] : [{ rule: "news join one run", what: `event ${eventId} joined ${count} runs` }];
      return { violations, ownRunIds: all.flatMap(({ run }) => (run.selfWakeCount > 0 ? [run.id] : [])) };
    },
    [Symbol.dispose]: () => watched[Symbol.dispose](),
  };
}

function isEnded(state: RunState): boolean {
  return state >= RunState.COMPLETED;
}
