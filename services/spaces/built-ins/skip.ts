import { z } from "zod";
import { defineBuiltIn, pure } from "./built-in.ts";

export const skip = defineBuiltIn({
  name: "skip",
  description:
    "End this run without saying anything, when nothing needs an answer from you. What you called before stays done; " +
    "news will start a run again.",
  effect: pure,
  endsRun: true,
  arguments: z.strictObject({
    reason: z.string().max(4_096).optional().describe("Why there is nothing to say, for those who read the run."),
  }),
  async run() {
    return { skipped: true };
  },
});
