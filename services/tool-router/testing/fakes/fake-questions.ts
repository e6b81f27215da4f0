import type { ProvidersOptions } from "../../calls/execute/provider.ts";

const fail = async () => Promise.reject(new Error("something is asked"));

/** For providers that ask nothing. */
export const noQuestions: Pick<ProvidersOptions, "questions" | "records" | "sampling"> = {
  questions: { answer: fail },
  sampling: () => ({ sample: fail, used: () => ({}) }),
  records: { suspend: fail, resume: fail },
};
