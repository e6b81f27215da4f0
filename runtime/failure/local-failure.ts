import { Failure, type FailureCode } from "./failure.ts";

export interface LocalFailureOptions {
  /** What the code around tells cases apart by. */
  kind?: string;
  metadata?: Readonly<Record<string, string>>;
  cause?: unknown;
}

/**
 * What no caller on the wire tells apart, so that the contract has no reason for it: it is for the operator who starts the
 * process, for a model that reads the error of a tool, or for the code around it. On the wire it would be INTERNAL.
 */
export class LocalFailure extends Failure {
  readonly kind: string | undefined;

  constructor(code: FailureCode, message: string, { kind, metadata, cause }: LocalFailureOptions = {}) {
    super(code, message, { reason: "INTERNAL", metadata, cause });
    this.kind = kind;
  }
}

export function refuseLocally(code: FailureCode, message: string, options?: LocalFailureOptions): never {
  throw new LocalFailure(code, message, options);
}
