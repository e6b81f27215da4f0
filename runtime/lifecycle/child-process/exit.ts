export interface ChildExit {
  code: number | null;
  signal: NodeJS.Signals | null;
  /** The end of what it wrote to stderr. */
  stderrTail: string;
}

/** `child exited with 1: …`, for the messages of those whose child went away. */
export function textFromExit(exit: ChildExit): string {
  const how = exit.signal ? `was ended by ${exit.signal}` : `exited with ${exit.code}`;
  return exit.stderrTail ? `${how}: ${exit.stderrTail}` : how;
}
