import type { Run, RunOptions, Toolbus } from "toolbus";
import { delay } from "#runtime/time/delay.ts";
import type { Functions } from "./functions.ts";

/** What a case says: the fields of all of them. */
export interface Play {
  readonly agent: string;
  readonly input: string;
  readonly functions?: readonly string[];
  readonly instructions?: string;
  readonly idempotencyKey?: string;
  readonly times?: number;
  readonly callerId: string;
  readonly id: string;
  readonly say: readonly string[];
}

type Seen = Readonly<Record<string, unknown>>;

/** Gives what was seen, by the names of the fields that cases expect. */
export const plays: Readonly<Record<string, (toolbus: Toolbus, play: Play, functions: Functions) => Promise<Seen>>> = {
  async run(toolbus, { agent, input, instructions, idempotencyKey, times = 1 }, { tools }) {
    const options: RunOptions = { functions: tools, instructions, idempotencyKey };
    const runs = Array.from({ length: times }, () => toolbus.run(agent, input, options));
    const places = await Promise.all(runs.map(({ created }) => created));
    return { ...(await seenOf(runs[0] as Run)), runs: new Set(places.map(({ runId }) => runId)).size };
  },

  async updates(toolbus, { agent, input, instructions }) {
    const events: string[] = [];
    const places: number[] = [];
    let told = "";
    for await (const update of toolbus.run(agent, input, { instructions })) {
      if (update.case !== "event") continue;
      const { event, sequence } = update.value;
      events.push(event.case ?? "");
      places.push(sequence);
      if (event.case === "accepted") told = event.value.options?.instructions ?? "";
    }
    const isWhole = places.every((place, index) => place === index);
    return { first: events[0], last: events.at(-1), isWhole, instructions: told };
  },

  async text(toolbus, { agent, input }) {
    let text = "";
    for await (const piece of toolbus.run(agent, input).text()) text = piece.replaces ? piece.text : text + piece.text;
    return { text };
  },

  async takeUp(toolbus, { agent, input }, { tools }) {
    const declared = tools.map((one) => ({ ...one, run: () => Promise.reject(new Error("it has left")) }));
    const { runId } = await toolbus.run(agent, input, { functions: declared }).created; // nobody looks at it, so nothing is called
    return seenOf(toolbus.takeUp(runId, { functions: tools }));
  },

  async cancel(toolbus, { agent, input }, { tools }) {
    const run = toolbus.run(agent, input, { functions: tools });
    await run.created;
    await run.cancel("not wanted any more");
    return seenOf(run);
  },

  async offer(toolbus, { agent, input, callerId, times = 1 }, { tools }) {
    await using session = await toolbus.openSession(agent);
    await using attachment = await session.offer(callerId, tools);
    let seen: Seen = {};
    for (let time = 0; time < times; time += 1) seen = await seenOf(session.run(input));
    return { ...seen, names: attachment.names };
  },

  async watch(toolbus, { agent, input }, { tools }) {
    await using _ = await toolbus.watch({ tools: Object.fromEntries(tools.map(({ name, run }) => [name, run])) });
    return await seenOf(toolbus.run(agent, input));
  },

  async space(toolbus, { id, say }) {
    const space = await toolbus.openSpace(id);
    const heard: string[] = [];
    const hearing = (async () => {
      for await (const { event } of space.watch({ from: 0n })) {
        if (event.case !== "messagePosted" || event.value.content.case !== "text") continue;
        heard.push(...event.value.content.value.content.map(({ part }) => (part.case === "text" ? part.value : "")));
        if (heard.length >= say.length) return;
      }
    })();
    for (const words of say) {
      await space.send(words);
      await delay(200);
    }
    await hearing;
    return { heard };
  },
};

/** The result's fields, those of the run that is stored beside them. */
async function seenOf(run: Run): Promise<Seen> {
  const { state, endReason, text, run: stored } = await run.result();
  const outputs = stored.items.flatMap(({ item }) => (item.case === "functionCallOutput" ? [item.value.result] : []));
  return { state, endReason, text, error: outputs.find((output) => output?.isError)?.outputJson };
}
