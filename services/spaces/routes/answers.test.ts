import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ToolMessageState as Status } from "#gen/toolbus/space/v1/space_pb.ts";
import { clientsOn, openTestSpaces, type TestSpaces } from "../testing/test-spaces.ts";

describe("answers of people", () => {
  const stack = new AsyncDisposableStack();
  let room: TestSpaces;
  let ann: TestSpaces["clients"];
  let bob: TestSpaces["clients"];
  const spaceId = "asked";

  beforeAll(async () => {
    room = stack.use(await openTestSpaces());
    ann = clientsOn(room.bus, "ann");
    bob = clientsOn(room.bus, "bob");
    await room.openSpace(spaceId, "asker");
    await room.openSpace("elsewhere");
  });
  afterAll(() => stack.disposeAsync());

  const show = (callId: string, status: Status = Status.REQUIRES_ACTION) =>
    room.clients.toolMessages.recordToolMessage({
      ...{ spaceId, sessionId: "asked-asker", agent: "asker" },
      message: { callId, tool: "ask", state: status },
    });
  const shown = async (callId: string) => {
    const { messages } = await ann.spaces.listMessages({ spaceId });
    const found = messages.find(({ id }) => id === `tool:${callId}`)?.content;
    return found?.case === "tool" ? found.value : undefined;
  };

  test("TOOL-7 of ten people who answer at once one wins, and its answer is shown", async () => {
    await show("raced");
    const answer = (index: number) =>
      clientsOn(room.bus, `person${index}`).spaces.answerToolCall({
        spaceId,
        callId: "raced",
        outcome: { case: "resultJson", value: `${index}` },
      });
    const answers = await Promise.allSettled(Array.from({ length: 10 }, (_, index) => answer(index)));
    expect(answers.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    const outputJson = room.submissions.get("raced");
    expect(await shown("raced")).toMatchObject({ state: Status.COMPLETE, result: { outputJson } });
    await expect(
      ann.spaces.answerToolCall({ spaceId, callId: "raced", outcome: { case: "resultJson", value: "1" } }),
    ).rejects.toThrow(/failed_precondition.*already resolved/);
  });

  test("TOOL-13 who answers keeps the name by which others know it, and has its own where it had none", async () => {
    await ann.spaces.enterSpace({ spaceId, member: { case: "personName", value: "Ann" } });
    for (const [by, callId] of [
      [ann, "named"],
      [bob, "unnamed"],
    ] as const) {
      await show(callId);
      await by.spaces.answerToolCall({ spaceId, callId, outcome: { case: "resultJson", value: "1" } });
    }
    const { space } = await ann.spaces.getSpace({ spaceId });
    const nameOf = (principal: string) => space?.members.find(({ id }) => id === principal)?.name;
    expect([nameOf("ann"), nameOf("bob")]).toEqual(["Ann (ann)", "bob"]);
  });

  test("TOOL-9 whose answer nobody waited for any more is told so", async () => {
    const outcome = { case: "resultJson", value: "1" } as const;
    for (const [callId, resolvedLate] of [
      ["late1", true],
      ["soon1", false],
    ] as const) {
      await show(callId);
      expect(await ann.spaces.answerToolCall({ spaceId, callId, outcome })).toMatchObject({ resolvedLate });
    }
  });

  test("TOOL-7 of ten people who answer with submissions of their own, the winner is told that it won however often it asks", async () => {
    await show("repeated");
    const answer = (index: number, value = `${index}`) =>
      clientsOn(room.bus, `person${index}`).spaces.answerToolCall({
        ...{ spaceId, callId: "repeated", submissionId: `by ${index}` },
        outcome: { case: "resultJson", value },
      });
    const race = () => Promise.allSettled(Array.from({ length: 10 }, (_, index) => answer(index)));
    const winner = (await race()).findIndex(({ status }) => status === "fulfilled");
    const again = await race();
    expect(again.map(({ status }) => status === "fulfilled")).toEqual(again.map((_, index) => index === winner));
    const { message } = await answer(winner);
    expect(message?.content).toMatchObject({ value: { state: Status.COMPLETE, result: { outputJson: `${winner}` } } });
    await expect(answer(winner, '"another"')).rejects.toThrow(/already_exists.*stands for another outcome/);
  });

  test("TOOL-7 who answers takes part in the space", async () => {
    await show("joined");
    await bob.spaces.answerToolCall({ spaceId, callId: "joined", outcome: { case: "resultJson", value: "{}" } });
    const { space } = await bob.spaces.getSpace({ spaceId });
    expect(space?.members.map(({ id }) => id)).toContain("bob");
  });

  test("TOOL-7 a call that nobody knows, or that another space shows, has no answer", async () => {
    await show("here");
    await expect(
      ann.spaces.answerToolCall({ spaceId, callId: "nothing", outcome: { case: "resultJson", value: "1" } }),
    ).rejects.toThrow(/not_found.*shows no call nothing/);
    await expect(
      ann.spaces.answerToolCall({ spaceId: "elsewhere", callId: "here", outcome: { case: "resultJson", value: "1" } }),
    ).rejects.toThrow(/not_found.*"elsewhere" shows no call here/);
    await show("forgotten1");
    await expect(
      ann.spaces.answerToolCall({ spaceId, callId: "forgotten1", outcome: { case: "resultJson", value: "1" } }),
    ).rejects.toThrow(/not_found.*there is no call forgotten1/);
    expect((await shown("here"))?.state).toBe(Status.REQUIRES_ACTION);
  });

  test("SEC-2 a call under the id of another one, in a space of one's own, answers nothing for that one", async () => {
    await show("approve");
    const owner = { sessionId: "mallorys", agent: "bot" };
    room.sessions.set("mallorys", { principal: "mallory", agent: "bot" });
    const mallory = clientsOn(room.bus, "mallory");
    await mallory.spaces.createSpace({ spaceId: "hideout", title: "", grants: { principals: [] } });
    for (const state of [Status.REQUIRES_ACTION, Status.COMPLETE]) {
      const message = { callId: "approve", tool: "echo", state };
      await mallory.toolMessages.recordToolMessage({ ...owner, spaceId: "hideout", message });
      const outcome = { case: "resultJson", value: '{"approved":true}' } as const;
      const answer = mallory.spaces.answerToolCall({ spaceId: "hideout", callId: "approve", outcome });
      await expect(answer).rejects.toThrow(/not_found.*"hideout" shows no call approve/);
    }
    expect(room.submissions.has("approve")).toBe(false);
  });

  test("TOOL-5 a call that has expired takes no answer, and what the router shows of it stays", async () => {
    await show("expired1");
    await expect(
      ann.spaces.answerToolCall({ spaceId, callId: "expired1", outcome: { case: "resultJson", value: "1" } }),
    ).rejects.toThrow(/failed_precondition.*has expired/);
    await show("expired1", Status.ERROR);
    await expect(
      ann.spaces.answerToolCall({ spaceId, callId: "expired1", outcome: { case: "resultJson", value: "1" } }),
    ).rejects.toThrow(/failed_precondition.*has expired/);
    expect((await shown("expired1"))?.state).toBe(Status.ERROR);
  });

  test("TOOL-7 an answer that does not fit its schema, or is no JSON, is refused and the call waits on", async () => {
    await show("strict1");
    await expect(
      ann.spaces.answerToolCall({ spaceId, callId: "strict1", outcome: { case: "resultJson", value: "[1]" } }),
    ).rejects.toThrow(/invalid_argument.*must be object/);
    await expect(
      ann.spaces.answerToolCall({ spaceId, callId: "strict1", outcome: { case: "resultJson", value: "{" } }),
    ).rejects.toThrow(/invalid_argument.*is not JSON/);
    expect((await shown("strict1"))?.state).toBe(Status.REQUIRES_ACTION);
    await ann.spaces.answerToolCall({
      spaceId,
      callId: "strict1",
      outcome: { case: "resultJson", value: '{"yes":true}' },
    });
    expect((await shown("strict1"))?.state).toBe(Status.COMPLETE);
  });

  test("KIND-4 a refusal is shown as an error", async () => {
    await show("refused");
    await ann.spaces.answerToolCall({
      spaceId,
      callId: "refused",
      outcome: { case: "error", value: "not today" },
    });
    expect(await shown("refused")).toMatchObject({
      state: Status.ERROR,
      result: { isError: true, outputJson: '{"error":"not today"}' },
    });
  });

  test("TOOL-10 a call that runs waits for nobody", async () => {
    await show("running", Status.RUNNING);
    await expect(
      ann.spaces.answerToolCall({ spaceId, callId: "running", outcome: { case: "resultJson", value: "1" } }),
    ).rejects.toThrow(/waits for nobody: it is running/);
  });
});
