/** What the processes of the measurement agree on. */
export const AGENT = "measuring";
export const CALLER = "bench";
export const TOOL = "echo";
