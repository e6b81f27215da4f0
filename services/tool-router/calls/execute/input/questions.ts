import { create } from "@bufbuild/protobuf";
import {
  type Elicitation,
  type InputRequest,
  type InputRequired,
  type InputResponses,
  InputResponsesSchema,
} from "#gen/toolbus/provider/v1/input_pb.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { openEnding } from "#runtime/time/ending.ts";
import type { CallRecord } from "../../records/record/call-record.ts";
import { isOpen } from "../../records/record/states.ts";
import type { ProviderStream, Told } from "./provider-stream.ts";
import { type AskingCall, answerOf, isAnsweredByCaller } from "./question.ts";
import { createQuestionRecords, type QuestionRecordsParts } from "./question-records.ts";

/*
 * What a tool asks while it is called (MCP's elicitation) becomes a question: a recorded call that people answer, shown in the
 * active space of the agent like a call of a tool that a space answers. Who may answer such a call may answer the question. Whoever
 * calls may have questions answered, too: then it is told of them, and needs no space.
 *
 * questions-1  A question has the same id whoever asks it, so a call that goes on elsewhere finds its question, answered or not.
 * questions-2  A question that nobody waits for is withdrawn: the call was canceled, its server let go of it, or the time to answer is
 *     over. If the router dies that waited, the question expires by its record.
 * questions-3  A call that its provider holds open (`live`) goes on with the answer on a further stream; the end of the first one ends the
 *     question. If its router or provider dies, its outcome is unknown. For any other call the record holds what it waits for, and any
 *     router goes on with it (`suspended` in records.ts).
 * questions-4  While a person is asked, the call's time stands still. The question has its own, and the run's end caps it.
 */

export type Questions = ReturnType<typeof createQuestions>;

interface Opened {
  readonly request: InputRequest;
  readonly elicitation: Elicitation | undefined;
  /** The question's record, or why nobody is asked; undefined for what is no question. */
  readonly opened: Promise<CallRecord | string> | undefined;
}

type Held = Pick<ProviderStream, "next"> | undefined;
type Answered = Told | { kind: "answered"; responses: InputResponses };

export function createQuestions(parts: QuestionRecordsParts) {
  const { open, wait } = createQuestionRecords(parts);

  async function resultOf(call: AskingCall, { request, opened }: Opened, signal: AbortSignal): Promise<string> {
    const { id, request: wanted } = request;
    if (wanted.case === "sampling") return call.sample({ id, ...wanted.value }, signal);
    const asked = await opened;
    if (typeof asked === "object") return answerOf(await wait(asked, signal));
    call.note(
      `${call.tool} asks for something, and ${asked ?? "this release cannot give it"}; it was told so (cancel)`,
    );
    return JSON.stringify({ action: "cancel" });
  }

  /** All at once, so that whoever calls is told of all together. */
  function openAll(call: AskingCall, requests: readonly InputRequest[]): Opened[] {
    const all = requests.map((request): Opened => {
      const elicitation = request.request.case === "elicitation" ? request.request.value : undefined;
      return { request, elicitation, opened: elicitation && open(call, { request, elicitation }) };
    });
    const tell = async () => {
      const asked = all.map(async ({ elicitation, opened }) => {
        const record = await opened;
        const isAsked = typeof record === "object" && isOpen(record);
        return isAsked && elicitation && isAnsweredByCaller(call, elicitation) ? [record] : [];
      });
      const questions = (await Promise.all(asked)).flat();
      if (questions.length > 0) call.tellAsked(questions);
    };
    void tell().catch(() => {}); // whoever waits for the answers is told
    return all;
  }

  return {
    /** Asks whatever is required, at once; a stream that is held open meanwhile is heard (questions-3). */
    async answer(call: AskingCall, required: InputRequired, held: Held, signal: AbortSignal): Promise<Answered> {
      using ending = openEnding(signal);
      const { requests, state } = required;
      const asking = Promise.all(
        openAll(call, requests).map(async (opened) => ({
          id: opened.request.id,
          resultJson: await resultOf(call, opened, ending.signal),
        })),
      ).then((responses) => ({
        kind: "answered" as const,
        responses: create(InputResponsesSchema, { responses, state }),
      }));
      const released = held?.next();
      released?.catch(() => {}); // after the answers, it is heard on another stream
      try {
        return await (released === undefined ? asking : Promise.race([asking, released]));
      } finally {
        ending.end(new Failure("canceled", "what was asked for is asked for no more", { reason: "CANCELED" }));
        await asking.catch(() => {}); // withdrawn
      }
    },
  };
}
