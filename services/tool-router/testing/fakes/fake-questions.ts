import type { Questions } from "../../calls/execute/input/questions.ts";

/** For providers that ask nothing. */
export const noQuestions: Questions = {
  answer: async () => Promise.reject(new Error("something is asked")),
};
