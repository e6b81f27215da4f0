import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { SessionSchema, SessionState as State } from "#gen/toolbus/session/v1/session_pb.ts";
import { Effect } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { canceled } from "../calls/answers/answer.ts";
import { canceledBySwitch, refuseOutdated, refuseSwitched, refuseSwitching } from "./failures.ts";

const session = create(SessionSchema, { id: "s", agent: "red", nextAgent: "blue", state: State.DRAINING });

test("ORCH-1 a call that a switch canceled says so, and that its outcome is unknown where it may have acted", () => {
  const why = 'the call was canceled: session s is being switched to agent \\"blue\\", and the call took too long';
  const reason = canceledBySwitch(session);
  expect(canceled(Effect.PURE, reason).outputJson).toBe(`{"error":"${why}"}`);
  expect(canceled(Effect.AT_MOST_ONCE, reason).outputJson).toBe(`{"error":"outcome_unknown: ${why}"}`);
  expect(canceled(Effect.PURE, new Error("gone")).outputJson).toBe('{"error":"the call was canceled"}');
});

test("ORCH-1 refusals name the session, where it is on its way to, and the agent for whom they hold", () => {
  expect(() => refuseSwitching(session)).toThrow('session s is being switched to agent "blue"');
  expect(() => refuseSwitching({ ...session, nextAgent: "" })).toThrow("session s is being closed");
  const after = { ...session, agent: "blue", state: State.ACTIVE };
  expect(() => refuseSwitched(after)).toThrow(
    'session s has agent "blue" now: what its former agent decided is not carried out',
  );
  expect(() => refuseOutdated({ ...after, contextRevision: 9 }, 4)).toThrow(
    'session s has agent "blue" with context revision 9: a switch from context revision 4 is not made',
  );
});
