// A hosted module: it runs in a process of its own, started by the worker pool, and reaches the agent's other tools and
// its model. Use it as @notes/remember and @notes/summarize; `toolbus/hosted` has the types of the form.

import type { HostedModule, HostedTool } from "toolbus/hosted";

const notes: string[] = [];

const remember: HostedTool<{ text: string }> = {
  name: "remember",
  description: "Keeps a note for as long as this process lives, and tells how many there are.",
  inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
  run({ text }, { log }) {
    notes.push(text);
    log.info("remembered", { notes: notes.length });
    return { notes: notes.length };
  },
};

const summarize: HostedTool<{ about?: string }> = {
  name: "summarize",
  description: "Sums up the notes, in the words of the agent's own model.",
  inputSchema: { type: "object", properties: { about: { type: "string" } } },
  effect: "pure",
  async run({ about = "everything" }, { model, config }) {
    const instructions = `Sum up these notes about ${about} in ${config.words ?? 50} words.`;
    const { text } = await model.generate({ prompt: notes.join("\n"), instructions });
    return { notes: notes.length, summary: text };
  },
};

export default {
  tools: [remember, summarize],
  shutdown() {
    notes.length = 0;
  },
} satisfies HostedModule;
