import type { AnsweredRequest } from "#gen/toolbus/internal/caller/v1/answered_request_pb.ts";

/** Which submissions have won, so that their repetition is told so, by any instance and after a crash. */
export interface AnsweredRequests {
  /** In place of what stood there, of a request that is open again. */
  write(sessionId: string, requestId: string, answered: AnsweredRequest): Promise<void>;
  /** False when one stands there. */
  claim(sessionId: string, requestId: string, answered: AnsweredRequest): Promise<boolean>;
  read(sessionId: string, requestId: string): Promise<AnsweredRequest | undefined>;
  remove(sessionId: string, requestId: string): Promise<void>;
}
