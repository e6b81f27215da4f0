import { z } from "zod";

/** What is known of a request whose answer did not come in time: enough to bring a late one to the agent's inbox. */
export const lateRequest = z.object({ agent: z.string(), tool: z.string() });
export type LateRequest = z.infer<typeof lateRequest>;

export interface LateRequests {
  write(sessionId: string, requestId: string, late: LateRequest): Promise<void>;
  read(sessionId: string, requestId: string): Promise<LateRequest | undefined>;
  remove(sessionId: string, requestId: string): Promise<void>;
}
